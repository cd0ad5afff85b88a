/* For the programs of this folder. */
#ifndef WEFT_TESTS_MPI_LOST_H
#define WEFT_TESTS_MPI_LOST_H

#include <signal.h>
#include <string.h>

#include <mpi-ext.h>

#include "../expect.h"

static int rank, size;

static inline void die_if(int condition) {
  if (condition) raise(SIGKILL);
}

/* How many lost ranks of the communicator this rank knows of. */
static inline int num_lost(MPI_Comm comm) {
  MPI_Group group;
  int count;
  EXPECT(MPIX_Comm_get_failed(comm, &group) == MPI_SUCCESS);
  MPI_Group_size(group, &count);
  MPI_Group_free(&group);
  return count;
}

/* The living go on: all of them get the sum of their ranks in the communicator that is left. */
static inline void expect_living(MPI_Comm comm, int expected_size) {
  int own, living, sum = -1;
  MPI_Comm_size(comm, &living);
  MPI_Comm_rank(comm, &own);
  EXPECT(living == expected_size);
  EXPECT(MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
  EXPECT(sum == living * (living - 1) / 2);
}

#endif
