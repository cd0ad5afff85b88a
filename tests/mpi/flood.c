/* A sender of 600 MB has a receiver that receives nothing for a while: what waits at the receiver is
 * bounded (16 MiB, which take 8 KiB for each message in buffers of UCX, and what is on its way: 100 to 200 MiB
 * were seen, of 1.6 GiB that all of them would take), and nothing is lost. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES 200000
#define BYTES 3000

static long resident_mib(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) exit(4);
  fclose(file);
  return resident * 4 / 1024;
}

int main(int argc, char** argv) {
  int rank;
  char bytes[BYTES];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  memset(bytes, 0, sizeof bytes);
  if (rank == 0) {
    for (int i = 0; i < MESSAGES; ++i) {
      memcpy(bytes, &i, sizeof i);
      MPI_Send(bytes, BYTES, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
      if (i == 1000) MPI_Send(bytes, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    }
  } else if (rank == 1) {
    long before, after;
    MPI_Recv(bytes, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    before = resident_mib();
    /* The receiver makes progress and receives nothing. */
    for (int i = 0; i < 200000; ++i) {
      int flag;
      MPI_Iprobe(0, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    after = resident_mib();
    for (int i = 0; i < MESSAGES; ++i) {
      int number;
      MPI_Recv(bytes, BYTES, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      memcpy(&number, bytes, sizeof number);
      if (number != i) MPI_Abort(MPI_COMM_WORLD, 3);
    }
    printf("the receiver grew by %s than 400 MiB\n", after - before < 400 ? "less" : "more");
  }
  MPI_Finalize();
  return 0;
}
