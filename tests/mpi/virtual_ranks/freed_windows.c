// A rank with a window does not move, and moves when it has freed the window.
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
  int rank, size, memory = 0, *allocated;
  MPI_Win created, other;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int round = 0; round < 3; ++round) {
    const int next = 1 - Weft_pe(), one = 1;
    memory = 0;
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    MPI_Win_allocate(sizeof(int), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &other);
    MPI_Win_fence(0, created);
    MPI_Accumulate(&one, 1, MPI_INT, (rank + 1) % size, 0, 1, MPI_INT, MPI_SUM, created);
    MPI_Win_fence(0, created);
    expect(memory == 1, "the accumulate has come");
    expect(Weft_migrate(next) != MPI_SUCCESS, "a rank with windows stays");
    MPI_Win_free(&other);
    MPI_Win_free(&created);
    expect(Weft_migrate(next) == MPI_SUCCESS, "a rank without windows moves");
    expect(Weft_pe() == next, "the rank has moved");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%d ranks moved\n", size);
  return MPI_Finalize();
}
