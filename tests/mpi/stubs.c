/* Functions that Weft does not implement return an error and say their name once. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
  MPI_Comm comm;
  int first, second, class = MPI_SUCCESS;
  MPI_Init(NULL, NULL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  first = MPI_Comm_join(0, &comm);
  second = MPI_Comm_join(0, &comm);
  MPI_Error_class(first, &class);
  if (class != MPI_ERR_UNSUPPORTED_OPERATION || second != first) return 1;
  puts("both calls failed");
  return MPI_Finalize();
}
