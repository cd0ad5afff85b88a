/* For the test programs of this folder: EXPECT(condition) ends the process with the file, the line and the condition, and
 * class_of(code) is the class of an error. */
#ifndef WEFT_TESTS_MPI_EXPECT_H
#define WEFT_TESTS_MPI_EXPECT_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition)                                                       \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                                  \
    }                                                                           \
  } while (0)

static inline int class_of(int code) {
  int class = -1;
  MPI_Error_class(code, &class);
  return class;
}

#endif
