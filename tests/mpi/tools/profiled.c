/* Calls functions that the library also uses itself: only the program's calls are counted, see tool.c. */
#include <mpi.h>

int main(int argc, char** argv) {
  int size, counts[1] = {1}, displacements[1] = {0}, value = 3, result = 0;
  MPI_Comm copy;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Allgatherv(&value, 1, MPI_INT, &result, counts, displacements, MPI_INT, MPI_COMM_SELF);
  MPI_Comm_free(&copy);
  MPI_Finalize();
  return result == 3 ? 0 : 1;
}
