/* Ten exchanges with the next and the previous rank, and a barrier: what a trace is to count. */
#include <mpi.h>

int main(int argc, char** argv) {
  int rank = 0, size = 0, from = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 10; ++i)
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &from, 1, MPI_INT, (rank + size - 1) % size, i,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return from == (rank + size - 1) % size ? 0 : 1;
}
