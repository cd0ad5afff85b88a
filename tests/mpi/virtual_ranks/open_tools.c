/* A rank with an open tool interface, or with a partitioned message, does not move, and moves when both are gone. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft_mpi.h>

static void expect(int condition, const char* what) {
  if (condition) return;
  fprintf(stderr, "not true: %s\n", what);
  exit(1);
}

int main(void) {
  int rank, size, provided, sent[2], received[2];
  MPI_Request pair[2];
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int round = 0; round < 3; ++round) {
    const int next = 1 - Weft_pe();
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    expect(Weft_migrate(next) != MPI_SUCCESS, "a rank with an open tool interface stays");
    MPI_T_finalize();
    MPI_Psend_init(sent, 2, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[0]);
    MPI_Precv_init(received, 2, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                   &pair[1]);
    expect(Weft_migrate(next) != MPI_SUCCESS, "a rank with requests stays");
    sent[0] = rank, sent[1] = round, received[0] = received[1] = -1;
    MPI_Startall(2, pair);
    MPI_Pready_range(0, 1, pair[0]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
    expect(received[0] == (rank + size - 1) % size && received[1] == round, "the partitions have come");
    MPI_Request_free(&pair[0]);
    MPI_Request_free(&pair[1]);
    expect(Weft_migrate(next) == MPI_SUCCESS, "a rank without them moves");
    expect(Weft_pe() == next, "the rank has moved");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks moved\n", size);
  return MPI_Finalize();
}
