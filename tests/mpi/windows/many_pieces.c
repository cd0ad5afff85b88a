/* Accesses by messages of more pieces than one request describes: rank 0 works on memory of rank 1 that it has attached to a dynamic
 * window. */
#include <string.h>

#include "../expect.h"

/* Blocks of one and of two integers in turn, so that no two pieces are described together. A request describes 65,536 pieces. */
enum { kBlocks = 150000, kData = kBlocks / 2 * 3, kInts = kBlocks / 2 * 5, kValues = 70000 };

static int rank;
static MPI_Win win;
static MPI_Aint place;
static int* memory;

static MPI_Datatype make_blocks(void) {
  int *lengths = malloc(kBlocks * sizeof *lengths), *places = malloc(kBlocks * sizeof *places);
  MPI_Datatype type;
  for (int i = 0; i < kBlocks; ++i) {
    lengths[i] = 1 + i % 2;
    places[i] = i / 2 * 5 + i % 2 * 2;
  }
  MPI_Type_indexed(kBlocks, lengths, places, MPI_INT, &type);
  MPI_Type_commit(&type);
  free(lengths);
  free(places);
  return type;
}

/* The integer of the memory that is number `i` of the packed ones. */
static int place_of(int i) {
  const int within[3] = {0, 2, 3};
  return i / 3 * 5 + within[i % 3];
}

static void flush(void) { EXPECT(MPI_Win_flush(1, win) == MPI_SUCCESS); }

static void expect_memory(int factor, int summand) {
  int* got = malloc(kInts * sizeof *got);
  EXPECT(MPI_Get(got, kInts, MPI_INT, 1, place, kInts, MPI_INT, win) == MPI_SUCCESS);
  flush();
  for (int i = 0; i < kData; ++i) EXPECT(got[place_of(i)] == factor * i + summand);
  for (int i = 0; i < kInts; i += 5) EXPECT(got[i + 1] == -1 && got[i + 4] == -1);
  free(got);
}

static void wait_for(MPI_Request request) { EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS); }

/* Both sides have gaps in turn. */
static void puts_and_gets(MPI_Datatype blocks) {
  int *packed = malloc(kData * sizeof *packed), *apart = malloc(kInts * sizeof *apart);
  MPI_Request request;
  for (int i = 0; i < kData; ++i) packed[i] = 3 * i;
  for (int i = 0; i < kInts; ++i) apart[i] = -7;
  EXPECT(MPI_Put(packed, kData, MPI_INT, 1, place, 1, blocks, win) == MPI_SUCCESS);
  flush();
  expect_memory(3, 0);
  EXPECT(MPI_Rget(apart, 1, blocks, 1, place, 1, blocks, win, &request) == MPI_SUCCESS);
  wait_for(request);
  for (int i = 0; i < kData; ++i) {
    EXPECT(apart[place_of(i)] == 3 * i);
    apart[place_of(i)] = 2 * i + 5;
  }
  for (int i = 0; i < kInts; i += 5) EXPECT(apart[i + 1] == -7 && apart[i + 4] == -7);
  EXPECT(MPI_Rput(apart, 1, blocks, 1, place, 1, blocks, win, &request) == MPI_SUCCESS);
  wait_for(request);
  expect_memory(2, 5);
  free(packed);
  free(apart);
}

/* Accumulates of one rank are applied in the order of the calls, element by element. */
static void accumulates(MPI_Datatype blocks) {
  int *operand = malloc(kData * sizeof *operand), *before = malloc(kData * sizeof *before);
  const int last = place_of(kData - 1) * (int)sizeof(int), minus = -1;
  int first_got, last_got;
  MPI_Request request;
  for (int i = 0; i < kData; ++i) operand[i] = i;
  EXPECT(MPI_Accumulate(operand, kData, MPI_INT, 1, place, 1, blocks, MPI_SUM, win) == MPI_SUCCESS);
  EXPECT(MPI_Fetch_and_op(&minus, &first_got, MPI_INT, 1, place, MPI_NO_OP, win) == MPI_SUCCESS);
  EXPECT(MPI_Fetch_and_op(&minus, &last_got, MPI_INT, 1, place + last, MPI_NO_OP, win) == MPI_SUCCESS);
  EXPECT(MPI_Get_accumulate(operand, kData, MPI_INT, before, kData, MPI_INT, 1, place, 1, blocks, MPI_SUM,
                            win) == MPI_SUCCESS);
  flush();
  EXPECT(first_got == 5 && last_got == 3 * (kData - 1) + 5);
  for (int i = 0; i < kData; ++i) EXPECT(before[i] == 3 * i + 5);
  expect_memory(4, 5);
  EXPECT(MPI_Raccumulate(operand, kData, MPI_INT, 1, place, 1, blocks, MPI_REPLACE, win, &request) ==
         MPI_SUCCESS);
  wait_for(request);
  expect_memory(1, 0);
  free(operand);
  free(before);
}

/* A value of MPI_SHORT_INT is two pieces, which are combined together. */
static void pairs(void) {
  struct pair {
    short value;
    int index;
  } *operand = calloc(kValues, sizeof *operand), *got = calloc(kValues, sizeof *got);
  for (int i = 0; i < kValues; ++i) operand[i] = (struct pair){(short)(i % 100), i};
  EXPECT(MPI_Accumulate(operand, kValues, MPI_SHORT_INT, 1, place, kValues, MPI_SHORT_INT, MPI_REPLACE,
                        win) == MPI_SUCCESS);
  for (int i = 0; i < kValues; ++i) operand[i] = (struct pair){50, -i};
  EXPECT(MPI_Accumulate(operand, kValues, MPI_SHORT_INT, 1, place, kValues, MPI_SHORT_INT, MPI_MAXLOC, win) ==
         MPI_SUCCESS);
  flush();
  EXPECT(MPI_Get(got, kValues, MPI_SHORT_INT, 1, place, kValues, MPI_SHORT_INT, win) == MPI_SUCCESS);
  flush();
  for (int i = 0; i < kValues; ++i) {
    const int is_own = i % 100 > 50;
    EXPECT(got[i].value == (is_own ? i % 100 : 50));
    EXPECT(got[i].index == (is_own ? i : -i));
  }
  free(operand);
  free(got);
}

/* The last piece is outside of what is attached: the first error of the parts is that of the access. */
static void outside(MPI_Datatype blocks) {
  int* packed = calloc(kData, sizeof *packed);
  MPI_Request request;
  EXPECT(MPI_Rput(packed, kData, MPI_INT, 1, place + 8, 1, blocks, win, &request) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)) == MPI_ERR_RMA_RANGE);
  EXPECT(MPI_Put(packed, kData, MPI_INT, 1, place + 8, 1, blocks, win) == MPI_SUCCESS);
  EXPECT(class_of(MPI_Win_flush(1, win)) == MPI_ERR_RMA_RANGE);
  free(packed);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  memory = malloc(kInts * sizeof *memory);
  for (int i = 0; i < kInts; ++i) memory[i] = -1;
  if (rank == 1) EXPECT(MPI_Win_attach(win, memory, kInts * sizeof *memory) == MPI_SUCCESS);
  MPI_Get_address(memory, &place);
  MPI_Bcast(&place, 1, MPI_AINT, 1, MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  if (rank == 0) {
    MPI_Datatype blocks = make_blocks();
    puts_and_gets(blocks);
    accumulates(blocks);
    pairs();
    outside(blocks);
    MPI_Type_free(&blocks);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) EXPECT(MPI_Win_detach(win, memory) == MPI_SUCCESS);
  free(memory);
  MPI_Win_free(&win);
  if (rank == 0) printf("many pieces: as expected\n");
  return MPI_Finalize();
}
