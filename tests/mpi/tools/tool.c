/* A profiling library: it counts the program's calls of two functions, and reports them at the end. */
#include <mpi.h>
#include <stdio.h>

static int num_sizes, num_dups;

int MPI_Comm_size(MPI_Comm comm, int* size) {
  ++num_sizes;
  return PMPI_Comm_size(comm, size);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  ++num_dups;
  return PMPI_Comm_dup(comm, copy);
}

int MPI_Finalize(void) {
  const int code = PMPI_Finalize();
  printf("%d sizes, %d duplicates\n", num_sizes, num_dups);
  return code;
}
