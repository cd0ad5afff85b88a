/* Dynamic windows: accesses over several regions, regions of host and of device memory, errors of each rank, and the order of
 * accumulates when one is refused. */
#include "../expect.h"

enum { kInts = 400000, kRounds = 20 };

static int rank, size, next;

/* The addresses of the next rank. */
static void exchange(const MPI_Aint *own, int count, MPI_Aint *others) {
  MPI_Sendrecv(own, count, MPI_AINT, (rank + size - 1) % size, 0, others, count, MPI_AINT, next, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

/* Two equal blocks are a loop: each is in a region of its own. */
static void check_two_regions(MPI_Win win) {
  int *first = calloc(100, sizeof *first), *second = calloc(100000, sizeof *second);
  int out[4] = {1, 2, 3, 4}, back[4] = {0, 0, 0, 0};
  MPI_Aint own[2], others[2];
  MPI_Datatype blocks;
  EXPECT(MPI_Win_attach(win, first, 400) == MPI_SUCCESS);
  EXPECT(MPI_Win_attach(win, second, 400000) == MPI_SUCCESS);
  MPI_Get_address(first, &own[0]);
  MPI_Get_address(second, &own[1]);
  exchange(own, 2, others);
  MPI_Type_create_hindexed_block(2, 2, others, MPI_INT, &blocks);
  MPI_Type_commit(&blocks);
  MPI_Win_fence(0, win);
  EXPECT(MPI_Put(out, 4, MPI_INT, next, 0, 1, blocks, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(first[0] == 1 && first[1] == 2 && second[0] == 3 && second[1] == 4);
  EXPECT(MPI_Get(back, 4, MPI_INT, next, 0, 1, blocks, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS);
  EXPECT(back[0] == 1 && back[3] == 4);
  MPI_Type_free(&blocks);
  EXPECT(MPI_Win_detach(win, first) == MPI_SUCCESS);
  EXPECT(MPI_Win_detach(win, second) == MPI_SUCCESS);
  free(first);
  free(second);
}

/* A piece goes on in the region that follows; behind the last one there is nothing. Memory of no bytes is in nobody's way. */
static void check_adjoining_regions(MPI_Win win) {
  int *memory = calloc(200, sizeof *memory), out[4] = {5, 6, 7, 8};
  MPI_Aint own, other;
  EXPECT(MPI_Win_attach(win, memory, 0) == MPI_SUCCESS);
  EXPECT(MPI_Win_attach(win, memory, 400) == MPI_SUCCESS);
  EXPECT(MPI_Win_attach(win, memory + 100, 400) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_attach(win, memory + 50, 400)) == MPI_ERR_RMA_ATTACH);
  MPI_Get_address(memory, &own);
  exchange(&own, 1, &other);
  MPI_Win_fence(0, win);
  EXPECT(MPI_Put(out, 4, MPI_INT, next, other + 392, 4, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(0, win) == MPI_SUCCESS);
  EXPECT(memory[98] == 5 && memory[99] == 6 && memory[100] == 7 && memory[101] == 8);
  EXPECT(MPI_Put(out, 4, MPI_INT, next, other + 792, 4, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)) == MPI_ERR_RMA_RANGE);
  EXPECT(memory[199] == 0);
  for (int i = 0; i < 2; ++i) EXPECT(MPI_Win_detach(win, memory) == MPI_SUCCESS);
  EXPECT(MPI_Win_detach(win, memory + 100) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_detach(win, memory)) == MPI_ERR_RMA_ATTACH);
  free(memory);
}

/* One access reaches memory of one place. */
static void check_two_places(MPI_Win win) {
  int *host = calloc(100, sizeof *host), *device, out[3] = {1, 2, 3};
  MPI_Aint own[3], others[3];
  MPI_Datatype blocks;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "weft_memory_kind", "emulated");
  EXPECT(MPI_Alloc_mem(400, info, &device) == MPI_SUCCESS);
  EXPECT(MPI_Win_attach(win, host, 400) == MPI_SUCCESS);
  EXPECT(MPI_Win_attach(win, device, 400) == MPI_SUCCESS);
  MPI_Get_address(host, &own[0]);
  MPI_Get_address(host + 7, &own[1]);
  MPI_Get_address(device, &own[2]);
  exchange(own, 3, others);
  MPI_Type_create_hindexed_block(3, 1, others, MPI_INT, &blocks);
  MPI_Type_commit(&blocks);
  MPI_Win_fence(0, win);
  EXPECT(MPI_Put(out, 3, MPI_INT, next, 0, 1, blocks, win) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_fence(0, win)) == MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPI_Put(out + 2, 1, MPI_INT, next, others[2], 1, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Get(out, 1, MPI_INT, next, others[2], 1, MPI_INT, win) == MPI_SUCCESS);
  EXPECT(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS);
  MPI_Type_free(&blocks);
  EXPECT(MPI_Win_detach(win, host) == MPI_SUCCESS);
  EXPECT(MPI_Win_detach(win, device) == MPI_SUCCESS);
  MPI_Info_free(&info);
  MPI_Free_mem(device);
  free(host);
}

/* A flush has the errors of its rank alone. */
static void check_errors(MPI_Win win) {
  int word = 0, one = 1, ended;
  MPI_Request request;
  MPI_Aint own, others[2];
  EXPECT(MPI_Win_attach(win, &word, sizeof word) == MPI_SUCCESS);
  MPI_Get_address(&word, &own);
  MPI_Allgather(&own, 1, MPI_AINT, others, 1, MPI_AINT, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Win_lock_all(0, win);
    EXPECT(MPI_Put(&one, 1, MPI_INT, 0, 12345, 1, MPI_INT, win) == MPI_SUCCESS);
    /* When a later access to the rank has ended, so has the wrong one. */
    EXPECT(MPI_Rput(&one, 1, MPI_INT, 0, own, 1, MPI_INT, win, &request) == MPI_SUCCESS);
    for (ended = 0; !ended;) MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
    EXPECT(MPI_Put(&one, 1, MPI_INT, 1, others[1], 1, MPI_INT, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_flush(1, win) == MPI_SUCCESS);
    EXPECT(class_of(MPI_Win_flush(0, win)) == MPI_ERR_RMA_RANGE);
    EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
    EXPECT(MPI_Win_unlock_all(win) == MPI_SUCCESS);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Win_detach(win, &word) == MPI_SUCCESS);
}

/* The first accumulate waits for its data, and the second one is refused: the third one comes after the first one. */
static void check_order(MPI_Win win) {
  int *memory = calloc(kInts, sizeof *memory), *tens = malloc(kInts * sizeof *tens), one = 1;
  MPI_Aint address;
  for (int i = 0; i < kInts; ++i) tens[i] = 10;
  EXPECT(MPI_Win_attach(win, memory, kInts * sizeof *memory) == MPI_SUCCESS);
  MPI_Get_address(memory, &address);
  MPI_Bcast(&address, 1, MPI_AINT, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    for (int round = 0; round < kRounds; ++round) {
      int got = -1;
      MPI_Accumulate(tens, kInts, MPI_INT, 0, address, kInts, MPI_INT, MPI_REPLACE, win);
      MPI_Accumulate(&one, 1, MPI_INT, 0, 4096, 1, MPI_INT, MPI_SUM, win);
      MPI_Accumulate(&one, 1, MPI_INT, 0, address, 1, MPI_INT, MPI_SUM, win);
      EXPECT(class_of(MPI_Win_flush(0, win)) == MPI_ERR_RMA_RANGE);
      MPI_Get(&got, 1, MPI_INT, 0, address, 1, MPI_INT, win);
      EXPECT(MPI_Win_flush(0, win) == MPI_SUCCESS);
      EXPECT(got == 11);
    }
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT(MPI_Win_detach(win, memory) == MPI_SUCCESS);
  free(memory);
  free(tens);
}

int main(void) {
  MPI_Win win;
  MPI_Init(NULL, NULL);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(size == 2);
  next = (rank + 1) % size;
  EXPECT(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  check_two_regions(win);
  check_adjoining_regions(win);
  check_two_places(win);
  check_errors(win);
  check_order(win);
  MPI_Win_free(&win);
  if (rank == 0) printf("attached memory of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
