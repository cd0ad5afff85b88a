/* How a rank ends. Usage: ending WAY [RANK [CODE]]: the rank of that number ends in that way, the others return 0 from main().
 *
 * Ways: return, exit, _exit, quick_exit, abort-job, no-init (none starts MPI), no-init-on-0 (those of PE 0 do not). Each rank prints lines from its handlers. */
#define _ISOC11_SOURCE /* at_quick_exit() */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank = -1;

static void first_handler(void) { printf("rank %d: first handler\n", rank); }
static void quick_handler(void) {
  printf("rank %d: quick handler\n", rank);
  fflush(stdout);
}
static void second_handler(void) { printf("rank %d: second handler\n", rank); }

__attribute__((destructor)) static void at_end(void) { printf("rank %d: destructor\n", rank); }

int main(int argc, char **argv) {
  const char *const way = argc > 1 ? argv[1] : "return";
  const int chosen = argc > 2 ? atoi(argv[2]) : -1;
  const int code = argc > 3 ? atoi(argv[3]) : 0;
  atexit(first_handler);
  atexit(second_handler);
  at_quick_exit(quick_handler);
  const char *const pe = getenv("WEFT_PE");
  const int is_on_0 = pe != NULL && strcmp(pe, "0") == 0;
  if (strcmp(way, "no-init") == 0 || (strcmp(way, "no-init-on-0") == 0 && is_on_0)) {
    rank = 0;
    return code;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(way, "abort-job") == 0 && rank == chosen) MPI_Abort(MPI_COMM_WORLD, code);
  MPI_Finalize();
  if (rank != chosen) return 0;
  if (strcmp(way, "exit") == 0) exit(code);
  if (strcmp(way, "quick_exit") == 0) quick_exit(code);
  if (strcmp(way, "_exit") == 0) {
    fflush(stdout);
    _exit(code);
  }
  return code;
}
