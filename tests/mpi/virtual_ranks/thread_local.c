/* A program with a thread-local variable, which ranks of one process would share. */
#include <mpi.h>

__thread int variable;

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &variable);
  return MPI_Finalize();
}
