/* Functions that Weft does not implement return an error and say their name once. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
  int number = 0;
  const int first = MPI_T_cvar_get_num(&number);
  const int second = MPI_T_cvar_get_num(&number);
  if (first != MPI_T_ERR_NOT_SUPPORTED || second != first) return 1;
  puts("both calls failed");
  return 0;
}
