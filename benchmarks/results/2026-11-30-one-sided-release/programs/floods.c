// Floods of outstanding requests, and accumulates of 1 MiB beside a plain loop: the numbers of the issue that OSU does not ask for.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static double now(void) { return MPI_Wtime(); }
int main(int argc, char** argv) {
  int rank, n = 100000, m = 1 << 17, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double *memory, *values = malloc(n * sizeof(double));
  for (int i = 0; i < n; i++) values[i] = i;
  MPI_Win win;
  MPI_Request* requests = malloc(n * sizeof *requests);
  for (int kind = 0; kind < 2; kind++) {
    if (kind == 0) { memory = calloc(n, sizeof(double)); MPI_Win_create(memory, n * 8L, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win); }
    else MPI_Win_allocate(n * 8L, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < n; i++) memory[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
      double t = 0;
      for (int k = 0; k < 4; k++) {  /* the first touches the pages */
        t = now();
        for (int i = 0; i < n; i++) MPI_Rput(values + i, 1, MPI_DOUBLE, 1, i, 1, MPI_DOUBLE, win, requests + i);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        t = now() - t;
      }
      MPI_Win_unlock(1, win);
      printf("rput_flood_%s %g us\n", kind ? "allocated" : "created", t / n * 1e6);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) for (int i = 0; i < n; i++) wrong += memory[i] != i;
    MPI_Win_free(&win);
  }
  double *target, *source = malloc(m * 8L);
  MPI_Win_allocate(m * 8L, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &target, &win);
  for (int i = 0; i < m; i++) source[i] = 1, target[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    double t = 0, total = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    for (int k = 0; k < 220; k++) {
      t = now();
      MPI_Accumulate(source, m, MPI_DOUBLE, 1, 0, m, MPI_DOUBLE, MPI_SUM, win);
      MPI_Win_flush(1, win);
      if (k >= 20) total += now() - t;
    }
    MPI_Win_unlock(1, win);
    printf("accumulate_1MiB %g us\n", total / 200 * 1e6);
    double* plain = calloc(m, 8);
    total = 0;
    for (int k = 0; k < 220; k++) {
      t = now();
      for (int i = 0; i < m; i++) plain[i] += source[i];
      __asm__ volatile("" ::"r"(plain) : "memory");
      if (k >= 20) total += now() - t;
    }
    printf("plain_loop_1MiB %g us\n", total / 200 * 1e6);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) { MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win); for (int i = 0; i < m; i++) wrong += target[i] != 220; MPI_Win_unlock(1, win); printf("wrong %d\n", wrong); fflush(stdout); }
  MPI_Win_free(&win);
  MPI_Finalize();
  return wrong != 0;
}
