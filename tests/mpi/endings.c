/* Ways in which a job ends badly. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank;
  char bytes[8] = "1234567";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) return 9;
  if (strcmp(argv[1], "abort") == 0 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 42);
  if (strcmp(argv[1], "exit") == 0 && rank == 1) exit(0);
  if (strcmp(argv[1], "truncate") == 0) {
    if (rank == 1) MPI_Send(bytes, 8, MPI_CHAR, 0, 5, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(bytes, 2, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (strcmp(argv[1], "late") == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Grequest_start(NULL, NULL, NULL, NULL, &request);
    MPI_Finalize();
    return MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  /* Nothing comes: the other rank ends the job. */
  MPI_Recv(bytes, 1, MPI_CHAR, 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
