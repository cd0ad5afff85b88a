/* Small accumulates come between the parts of large ones: of memory of the window, of the program, and with gaps. */
#include "../expect.h"

enum { kInts = 1 << 20, kSmall = 100, kMostLarge = 30 };

/* A rank repeats large accumulates until the other one has done some small ones, both on the memory of rank 1. */
static void check(MPI_Win win, int is_small, int is_dense) {
  static int ones[kInts];
  int done = 0, num_large = 0;
  MPI_Datatype type = MPI_INT;
  if (!is_dense) MPI_Type_vector(kInts / 4, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  if (is_small) {
    const int one = 1;
    int got;
    for (int i = 0; i < kSmall; ++i) {
      MPI_Fetch_and_op(&one, &got, MPI_INT, 1, 0, MPI_SUM, win);
      MPI_Win_flush(1, win);
    }
    MPI_Fetch_and_op(&one, &got, MPI_INT, 1, kInts, MPI_REPLACE, win);
  } else {
    for (; done == 0; ++num_large) {
      if (is_dense)
        MPI_Accumulate(ones, kInts, MPI_INT, 1, 0, kInts, MPI_INT, MPI_SUM, win);
      else
        MPI_Accumulate(ones, kInts / 4, MPI_INT, 1, 0, 1, type, MPI_SUM, win);
      MPI_Fetch_and_op(NULL, &done, MPI_INT, 1, kInts, MPI_NO_OP, win);
      MPI_Win_flush(1, win);
    }
    EXPECT(num_large <= kMostLarge);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!is_dense) MPI_Type_free(&type);
}

int main(void) {
  int rank, size, *memory;
  static int own[kInts + 1];
  MPI_Win win;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(size == 2);
  for (int is_dense = 0; is_dense < 2; ++is_dense) {
    EXPECT(MPI_Win_allocate((kInts + 1) * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win) ==
           MPI_SUCCESS);
    for (int i = 0; i <= kInts; ++i) memory[i] = 0;
    check(win, rank == 0, is_dense);
    MPI_Win_free(&win);
  }
  /* Where the system copies between processes, rank 0 does large ones by copies. */
  EXPECT(MPI_Win_create(own, sizeof own, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
  check(win, rank == 1, 1);
  MPI_Win_free(&win);
  if (rank == 0) printf("accumulates of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
