/* A process is killed while the others are in a collective: argument 1, with so many bytes as argument 2 says. It never returns. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  const int count = argc > 2 ? atoi(argv[2]) / (int)sizeof(double) : 1;
  int rank, size, round;
  double *out, *in;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  out = calloc((size_t)count * (size_t)size, sizeof(double));
  in = calloc((size_t)count * (size_t)size, sizeof(double));
  for (round = 0;; ++round) {
    if (rank == 1 && round == 30) raise(SIGKILL);
    if (argc < 2 || strcmp(argv[1], "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
    else if (strcmp(argv[1], "allreduce") == 0) MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    else if (strcmp(argv[1], "allgather") == 0) MPI_Allgather(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
    else MPI_Bcast(out, count, MPI_DOUBLE, round % size, MPI_COMM_WORLD);
  }
}
