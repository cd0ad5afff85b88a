// Weft_load_balance(). Usage: balance WAY
//   random: 60 calls, which each succeed with a rank on every PE.
//   last: all ranks compute and wait; then the last one computes ten times as much, and does not wait before the call.
//   clear: rank 1 loses its environment before.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft_mpi.h>

static double thread_time(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Of the processor: loads leave out waits for it.
static void compute(double seconds) {
  const double end = thread_time() + seconds;
  while (thread_time() < end) {
  }
}

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "random";
  MPI_Init(&argc, &argv);
  int rank = 0, failures = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (strcmp(way, "random") == 0) {
    for (int i = 0; i < 60; ++i) failures += Weft_load_balance() != MPI_SUCCESS;
  } else if (strcmp(way, "last") == 0) {
    compute(0.05);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 3) compute(0.5);
    failures += Weft_load_balance() != MPI_SUCCESS;
  } else {
    if (rank == 1) clearenv();
    failures += Weft_load_balance() != MPI_SUCCESS;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d: %d failures\n", rank, failures);
  MPI_Finalize();
  return failures;
}
