/* A program whose shared library has variables. With -DUSES_VARIABLE it names one of them. Prints the sum over ranks of the
 * library's number of calls. Each rank changes its environment. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int library_call(void);
#ifdef USES_VARIABLE
extern int library_variable;
#else
static const int library_variable = 5;
#endif

static int is_value(const char *name, const char *value) {
  const char *const found = getenv(name);
  return found != NULL && strcmp(found, value) == 0;
}

int main(int argc, char **argv) {
  int rank, calls, sum;
  char name[32];
  int i;
  if (getenv("WEFT_MPI_RANKS") != NULL) return 1; /* of this job, not of those that a rank starts */
  if (!is_value("SET_BY_LIBRARY", "yes") || getenv("SET_BY_RANK_0") != NULL) return 1;
  for (i = 0; i < 100; ++i) {
    snprintf(name, sizeof name, "SET_BY_RANK_%d", i);
    if (setenv(name, "by this rank", 1) != 0) return 1;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  calls = library_call();
  MPI_Reduce(&calls, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("calls: %d\n", sum);
  MPI_Finalize();
  return is_value("SET_BY_LIBRARY", "yes") && is_value("SET_BY_RANK_99", "by this rank") ? library_variable - 5 : 1;
}
