// MPI around parallel regions of OpenMP, and with the argument "inside" in one.
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  const int inside = argc > 1 && strcmp(argv[1], "inside") == 0;
  int level = 0, rank = 0, failures = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  omp_set_num_threads(2);
  for (int round = 0; round < 10; ++round) {
    long sum = 0;
    if (!inside) MPI_Barrier(MPI_COMM_WORLD);
#pragma omp parallel reduction(+ : sum)
    {
#pragma omp master
      if (inside) MPI_Barrier(MPI_COMM_WORLD);
#pragma omp barrier
#pragma omp for
      for (int i = 0; i < 1000; ++i) sum += i;
    }
    failures += sum != 499500;
  }
  printf("rank %d: %d failures\n", rank, failures);
  MPI_Finalize();
  return failures;
}
