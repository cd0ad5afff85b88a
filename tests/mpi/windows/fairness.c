/* Small accumulates come between the parts of large ones: of memory of the window, with gaps, and by copies of the system. */
#include "../expect.h"

enum { kInts = 1 << 21, kWanted = 20, kMostRounds = 1000, kFlag = kInts };

/* One rank repeats large accumulates on the memory of rank 1. The other one reads the first and the last value together until it has
 * come into the middle of enough of the large ones: there the first value is the larger one. A round is a large accumulate behind which it
 * has read: the reader may wait for its core, and miss any number of them. */
static void read_between(MPI_Win win, const char* which) {
  MPI_Datatype ends;
  int got[2], last_round = 0, last_over = 0, num_rounds = 0, one = 1;
  MPI_Type_vector(2, 1, kInts - 2, MPI_INT, &ends);
  MPI_Type_commit(&ends);
  for (int num_seen = 0; num_seen < kWanted;) {
    MPI_Get_accumulate(NULL, 0, MPI_INT, got, 2, MPI_INT, 1, 0, 1, ends, MPI_NO_OP, win);
    MPI_Win_flush(1, win);
    if (got[0] > got[1] && got[0] != last_round) {
      last_round = got[0];
      ++num_seen;
    }
    if (got[1] != last_over) ++num_rounds;
    last_over = got[1];
    if (num_rounds > kMostRounds) {
      fprintf(stderr, "%s: read %d times in the middle, and behind %d accumulates\n", which, num_seen,
              num_rounds);
      exit(1);
    }
  }
  MPI_Accumulate(&one, 1, MPI_INT, 1, kFlag, 1, MPI_INT, MPI_REPLACE, win);
  MPI_Win_flush(1, win);
  MPI_Type_free(&ends);
}

static void accumulate(MPI_Win win, int is_dense) {
  static int ones[kInts];
  MPI_Datatype gaps;
  int is_over = 0;
  for (int i = 0; i < kInts; ++i) ones[i] = 1;
  MPI_Type_vector(kInts / 2, 1, 2, MPI_INT, &gaps);
  MPI_Type_commit(&gaps);
  while (!is_over) {
    if (is_dense)
      MPI_Accumulate(ones, kInts, MPI_INT, 1, 0, kInts, MPI_INT, MPI_SUM, win);
    else
      MPI_Accumulate(ones, kInts / 2, MPI_INT, 1, 0, 1, gaps, MPI_SUM, win);
    MPI_Fetch_and_op(NULL, &is_over, MPI_INT, 1, kFlag, MPI_NO_OP, win);
    MPI_Win_flush(1, win);
  }
  MPI_Type_free(&gaps);
}

int main(void) {
  static const char* const names[] = {"allocated memory", "gaps", "memory of the program"};
  static int own[kInts + 1];
  int rank, size;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(size == 2);
  for (int i = 0; i < 3; ++i) {
    const int bytes = sizeof own, large = i < 2;
    int* memory = own;
    MPI_Win win;
    if (i < 2)
      MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    else
      MPI_Win_create(own, bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int k = 0; k <= kInts; ++k) memory[k] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == large)
      accumulate(win, i != 1);
    else
      read_between(win, names[i]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
  }
  if (rank == 0) printf("accumulates of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
