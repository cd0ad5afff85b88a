/* tests/install/test_clean_systems.py compiles it where a compiler is, and runs it where none is. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  rank += 1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 1) printf("sum %d\n", sum);
  return MPI_Finalize();
}
