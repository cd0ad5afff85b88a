/* A receive of two integers meets a message of 256 MiB: the receiver does not take memory for it. */
#define _POSIX_C_SOURCE 200809L

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static long most_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

int main(int argc, char** argv) {
  const MPI_Count size = (MPI_Count)256 << 20;
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int has_gap = argc > 1 && strcmp(argv[1], "gap") == 0;
  int last = 5;
  if (rank == 0) {
    char* const bytes = calloc((size_t)size, 1);
    if (bytes == NULL) return 8;
    MPI_Send_c(bytes, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Send(&last, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
    free(bytes);
  } else {
    int numbers[4] = {-1, -1, -1, -1}, code, class;
    MPI_Datatype type;
    MPI_Status status;
    MPI_Count count;
    MPI_Type_vector(2, 1, has_gap ? 2 : 1, MPI_INT, &type);
    MPI_Type_commit(&type);
    const long before_kib = most_kib();
    code = MPI_Recv(numbers, 1, type, 0, 0, MPI_COMM_WORLD, &status);
    const long taken_kib = most_kib() - before_kib;
    MPI_Error_class(code, &class);
    MPI_Get_count_c(&status, MPI_BYTE, &count);
    MPI_Recv(&last, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (numbers[3] != -1 || (has_gap && numbers[1] != -1)) printf("written outside of the elements\n");
    if (taken_kib > (64 << 10)) printf("%ld KiB taken\n", taken_kib);
    printf("%s, %d bytes, then %d\n", class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : "another error", (int)count, last);
    MPI_Type_free(&type);
  }
  MPI_Finalize();
  return 0;
}
