/* A program whose shared library has variables. With -DUSES_VARIABLE it names one of them. Prints the sum over ranks of the
 * library's number of calls. */
#include <mpi.h>
#include <stdio.h>

extern int library_call(void);
#ifdef USES_VARIABLE
extern int library_variable;
#else
static const int library_variable = 5;
#endif

int main(int argc, char **argv) {
  int rank, calls, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  calls = library_call();
  MPI_Reduce(&calls, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("calls: %d\n", sum);
  MPI_Finalize();
  return library_variable - 5;
}
