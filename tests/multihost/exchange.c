/* Rank 0 calls rank 1 every 20 ms, until the file exists: each waits inside a call. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank;
  int goes_on = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; goes_on; ++step) {
    if (rank == 0) {
      goes_on = access(argv[1], F_OK) != 0;
      MPI_Send(&goes_on, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
      MPI_Recv(&goes_on, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (step == 10) {
        puts("ready");
        fflush(stdout);
      }
      usleep(20000);
    } else {
      MPI_Recv(&goes_on, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&goes_on, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
  }
  MPI_Finalize();
  return 0;
}
