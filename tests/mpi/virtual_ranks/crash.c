// Rank 2 writes to address 0; with an argument, to variables for which its stack has no room.
#include <stddef.h>
#include <string.h>

#include <mpi.h>

__attribute__((noinline)) static int use_large_variables(int value) {
  volatile char variables[3 << 20];
  variables[0] = (char)value;  // the lowest one
  return variables[0];
}

int main(int argc, char** argv) {
  (void)argv;
  int rank = 0;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 2) {
    if (argc > 1) return use_large_variables(argc);
    *(volatile int*)NULL = 1;
  }
  MPI_Finalize();
  return 0;
}
