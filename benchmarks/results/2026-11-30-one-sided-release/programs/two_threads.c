// Message rate of two ranks: THREADS threads a rank, each with a communicator of its own, windows of 64 x 8 B.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static int rank, rounds = 20000;
static void* run(void* argument) {
  MPI_Comm comm = *(MPI_Comm*)argument;
  char buffer[64][8] = {{0}}; MPI_Request requests[64];
  for (int i = 0; i < rounds; i++) {
    for (int k = 0; k < 64; k++)
      if (rank == 0) MPI_Isend(buffer[k], 8, MPI_CHAR, 1, k, comm, &requests[k]);
      else MPI_Irecv(buffer[k], 8, MPI_CHAR, 0, k, comm, &requests[k]);
    MPI_Waitall(64, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(buffer[0], 1, MPI_CHAR, 1, 99, comm, MPI_STATUS_IGNORE);
    else MPI_Send(buffer[0], 1, MPI_CHAR, 0, 99, comm);
  }
  return 0;
}
int main(int argc, char** argv) {
  int threads = atoi(argv[1]), provided;
  if (argc > 2) rounds = atoi(argv[2]);
  MPI_Init_thread(&argc, &argv, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (threads && provided != MPI_THREAD_MULTIPLE) { puts("no MULTIPLE"); return 1; }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comms[8]; pthread_t ids[8];
  int n = threads ? threads : 1;
  for (int i = 0; i < n; i++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  double t = 0;
  for (int r = 0; r < 2; r++) {
    MPI_Barrier(MPI_COMM_WORLD);
    t = MPI_Wtime();
    if (!threads) run(&comms[0]);
    else { for (int i = 0; i < n; i++) pthread_create(&ids[i], 0, run, &comms[i]); for (int i = 0; i < n; i++) pthread_join(ids[i], 0); }
    MPI_Barrier(MPI_COMM_WORLD);
    t = MPI_Wtime() - t;
  }
  if (!rank) printf("%.3f\n", 64e-6 * n * rounds / t);
  MPI_Finalize();
}
