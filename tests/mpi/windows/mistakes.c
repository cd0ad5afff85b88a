/* What accesses, epochs and creations refuse, and what they take. Argument 1: "dynamic" for accesses by messages. */
#include <string.h>

#include "../expect.h"

static int rank, size;

static MPI_Win make(int is_dynamic, char **memory, MPI_Aint *address) {
  MPI_Win win;
  if (is_dynamic) {
    *memory = malloc(64);
    EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
    EXPECT(MPI_Win_attach(win, *memory, 64) == MPI_SUCCESS);
    MPI_Get_address(*memory, address);
  } else {
    EXPECT(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win) == MPI_SUCCESS);
    *address = 0;
  }
  memset(*memory, 0, 64);
  MPI_Bcast(address, 1, MPI_AINT, 0, MPI_COMM_WORLD);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  return win;
}

static void check_comparisons(MPI_Win win, MPI_Aint address) {
  const int lengths[2] = {1, 1};
  const MPI_Aint places[2] = {0, 4};
  MPI_Datatype parts[2] = {MPI_INT, MPI_FLOAT};
  MPI_Datatype taken[] = {MPI_INT, MPI_SIGNED_CHAR, MPI_UINT64_T, MPI_AINT, MPI_C_BOOL, MPI_BYTE};
  MPI_Datatype refused[] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_DATATYPE_NULL, MPI_DOUBLE,
                            MPI_SHORT_INT,     MPI_2INT,          MPI_CHAR,          MPI_C_DOUBLE_COMPLEX};
  const int num_taken = sizeof taken / sizeof *taken, num_refused = sizeof refused / sizeof *refused;
  long long zeros[4] = {0, 0, 0, 0}, others[4] = {~0LL, ~0LL, ~0LL, ~0LL}, got[4];
  MPI_Type_contiguous(2, MPI_INT, &refused[0]);
  MPI_Type_create_struct(2, lengths, places, parts, &refused[1]);
  MPI_Type_contiguous(0, MPI_INT, &refused[2]);
  for (int i = 0; i < 3; ++i) MPI_Type_commit(&refused[i]);
  for (int i = 0; i < num_refused; ++i) {
    EXPECT(class_of(MPI_Compare_and_swap(others, zeros, got, refused[i], 0, address, win)) == MPI_ERR_TYPE);
    EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
  }
  for (int i = 0; i < num_taken; ++i) {
    EXPECT(MPI_Compare_and_swap(others, zeros, got, taken[i], 0, address, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
    EXPECT(MPI_Put(zeros, 8, MPI_BYTE, 0, address, 8, MPI_BYTE, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
    EXPECT(((char *)got)[0] == 0);
  }
  for (int i = 0; i < 3; ++i) MPI_Type_free(&refused[i]);
}

/* Values are combined with values of the same datatype alone; the operators that only copy take any. */
static void check_other_types(MPI_Win win, MPI_Aint address) {
  const int seven = 7;
  float got = 0;
  EXPECT(class_of(MPI_Accumulate(&seven, 1, MPI_INT, 0, address, 1, MPI_FLOAT, MPI_SUM, win)) == MPI_ERR_TYPE);
  EXPECT(class_of(MPI_Accumulate(&seven, 1, MPI_INT, 0, address, 1, MPI_UNSIGNED, MPI_SUM, win)) == MPI_ERR_TYPE);
  EXPECT(class_of(MPI_Accumulate(&seven, 4, MPI_BYTE, 0, address, 1, MPI_INT, MPI_SUM, win)) == MPI_ERR_TYPE);
  EXPECT(MPI_Accumulate(&seven, 1, MPI_INT, 0, address, 1, MPI_INT32_T, MPI_SUM, win) == MPI_SUCCESS);
  EXPECT(MPI_Accumulate(&seven, 4, MPI_BYTE, 0, address, 1, MPI_FLOAT, MPI_REPLACE, win) == MPI_SUCCESS);
  EXPECT(MPI_Get_accumulate(NULL, 0, MPI_INT, &got, 1, MPI_FLOAT, 0, address, 1, MPI_FLOAT, MPI_NO_OP, win) ==
         MPI_SUCCESS);
  EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
  EXPECT(memcmp(&got, &seven, sizeof got) == 0);
}

static void check_epochs(MPI_Win win) {
  EXPECT(class_of(MPI_Win_flush_all(win)) == MPI_ERR_RMA_SYNC);
  EXPECT(class_of(MPI_Win_flush_local_all(win)) == MPI_ERR_RMA_SYNC);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  EXPECT(MPI_Win_flush_all(win) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_start(MPI_GROUP_EMPTY, 0, win)) == MPI_ERR_RMA_SYNC);
  MPI_Win_unlock(0, win);
  EXPECT(MPI_Win_start(MPI_GROUP_EMPTY, 0, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_complete(win) == MPI_SUCCESS);
}

/* Sizes whose sum wraps, and a hint that one rank alone gives. */
static void check_shared(void) {
  const MPI_Aint quarter = (MPI_Aint)1 << 62;
  int *memory, *first, unit;
  MPI_Aint bytes;
  MPI_Info info;
  MPI_Win win;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT(class_of(MPI_Win_allocate_shared(quarter + 64 * rank, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win)) ==
         MPI_ERR_SIZE);
  EXPECT(MPI_Win_allocate_shared(64, 4, rank == 0 ? info : MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win) ==
         MPI_SUCCESS);
  EXPECT(MPI_Win_shared_query(win, 0, &bytes, &unit, &first) == MPI_SUCCESS);
  EXPECT(memory == first + 16 * rank);
  memory[0] = rank;
  MPI_Win_free(&win);
  MPI_Info_free(&info);
}

int main(int argc, char **argv) {
  char *memory;
  MPI_Aint address;
  MPI_Win win;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  win = make(argc > 1 && strcmp(argv[1], "dynamic") == 0, &memory, &address);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) {
    check_epochs(win);
    MPI_Win_lock_all(0, win);
    check_comparisons(win, address);
    check_other_types(win, address);
    MPI_Win_unlock_all(win);
  }
  MPI_Win_free(&win);
  check_shared();
  if (rank == 0) printf("mistakes of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
