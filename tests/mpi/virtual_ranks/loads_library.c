// A program that loads a library of library.c with dlopen(). Usage: loads_library NAME [move]. Prints "rank R: own variables", or what
// dlerror() says. With "move", ranks try to move with the library and without it.
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#ifdef MOVES
#include <weft_mpi.h>
#endif

static int rank;

typedef int Call(void);

static const char* use_library(const char* name, void** library) {
  *library = dlopen(name, RTLD_NOW);
  if (*library == NULL) return dlerror();
  if (dlopen(name, RTLD_NOW) != *library) return "another handle";
  if (dlclose(*library) != 0) return "dlclose() fails";
  Call* const call = (Call*)dlsym(*library, "library_call");
  if (call == NULL) return dlerror();
  for (int i = 0; i <= rank; ++i) call();
  MPI_Barrier(MPI_COMM_WORLD);
  return call() == rank + 2 ? "own variables" : "variables of another rank";
}

int main(int argc, char** argv) {
  void* library = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const outcome = use_library(argv[1], &library);
  printf("rank %d: %s\n", rank, outcome);
#ifdef MOVES
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int pe = Weft_pe();
  if (Weft_migrate(1 - pe) == MPI_SUCCESS) printf("rank %d: has moved with its library\n", rank);
  dlclose(library);
  if (Weft_migrate(1 - pe) != MPI_SUCCESS || Weft_pe() == pe) printf("rank %d: has not moved\n", rank);
  printf("rank %d: %s\n", rank, use_library(argv[1], &library));
#endif
  MPI_Finalize();
  return strcmp(outcome, "own variables") != 0;
}
