/* Rank 0 fills the file system of the segments; then more messages are sent than the other ranks have memory for. */
#define _POSIX_C_SOURCE 200809L

#include <mpi.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMessages = 2000, kBytes = 7000 };

static void fill(void) {
  static char block[1 << 16];
  char path[4096];
  snprintf(path, sizeof path, "%s/full", getenv("UCX_POSIX_DIR"));
  const int file = open(path, O_CREAT | O_WRONLY, 0600);
  if (file < 0) exit(8);
  size_t size = sizeof block;
  while (size > 0) { /* to the last byte */
    if (write(file, block, size) < 0) size /= 2;
  }
  close(file);
}

int main(int argc, char** argv) {
  static char bytes[kBytes];
  static MPI_Request requests[kMessages];
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) fill();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    for (int i = 0; i < kMessages; ++i) MPI_Isend(bytes, kBytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(kMessages, requests, MPI_STATUSES_IGNORE);
  } else if (rank == 1) {
    for (int i = kMessages; i-- > 0;) MPI_Recv(bytes, kBytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  printf("rank %d has all\n", rank);
  return 0;
}
