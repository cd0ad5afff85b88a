/* Collectives with an operator that is not commutative, of sizes on all sides of those at which the algorithm changes: in place and not,
 * blocking and not, with all roots. And elements with a gap behind them, one for each process, of which operators get aligned ones. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

/* x -> a x + b, modulo 2^32. */
typedef struct {
  uint32_t a, b;
} Affine;

static int rank, size, in_place, non_blocking;
static MPI_Datatype affine;
static MPI_Op compose;

static Affine value(int from, int i) {
  const uint32_t seed = (uint32_t)from * 7919u + (uint32_t)i * 104729u + 17u;
  const Affine made = {seed * 2654435761u | 1u, seed * 40503u};
  return made;
}

static Affine composed(Affine left, Affine right) {
  const Affine both = {left.a * right.a, left.b * right.a + right.b};
  return both;
}

static void compose_all(void* in, void* inout, int* count, MPI_Datatype* type) {
  int i;
  (void)type;
  for (i = 0; i < *count; ++i) ((Affine*)inout)[i] = composed(((Affine*)in)[i], ((Affine*)inout)[i]);
}

/* The elements [first, first + count) of the processes [begin, end), composed. */
static void expect_composed(const Affine* found, int count, int begin, int end, int first) {
  int i, from;
  for (i = 0; i < count; ++i) {
    Affine expected = {1, 0};
    for (from = begin; from < end; ++from) expected = composed(expected, value(from, first + i));
    EXPECT(found[i].a == expected.a && found[i].b == expected.b);
  }
}

#define CALL(name, started, ...)                                         \
  do {                                                                   \
    MPI_Request request;                                                 \
    if (non_blocking) {                                                  \
      EXPECT(MPI_##started(__VA_ARGS__, &request) == MPI_SUCCESS);       \
      EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);      \
    } else {                                                             \
      EXPECT(MPI_##name(__VA_ARGS__) == MPI_SUCCESS);                    \
    }                                                                    \
  } while (0)

static void check_reductions(int count, const Affine* in, Affine* out) {
  const size_t bytes = (size_t)count * sizeof(Affine);
  const void* const given = in_place ? MPI_IN_PLACE : in;
  const MPI_Comm comm = MPI_COMM_WORLD;
  int counts[16], root, i, first = 0, left = count;
#define PREPARE() (in_place ? memcpy(out, in, bytes) : memset(out, 0x5a, bytes))
  PREPARE();
  CALL(Allreduce, Iallreduce, given, out, count, affine, compose, comm);
  expect_composed(out, count, 0, size, 0);
  for (root = 0; root < size; ++root) {
    PREPARE();
    CALL(Reduce, Ireduce, rank == root ? given : in, out, count, affine, compose, root, comm);
    if (rank == root) expect_composed(out, count, 0, size, 0);
  }
  PREPARE();
  CALL(Scan, Iscan, given, out, count, affine, compose, comm);
  expect_composed(out, count, 0, rank + 1, 0);
  PREPARE();
  CALL(Exscan, Iexscan, given, out, count, affine, compose, comm);
  if (rank > 0) expect_composed(out, count, 0, rank, 0);
  for (i = 0; rank == 0 && !in_place && i < count; ++i) EXPECT(out[i].a == 0x5a5a5a5a);
  if (rank == 0 && in_place) expect_composed(out, count, 0, 1, 0);
  /* The second one gets nothing. */
  for (i = 0; i < size; ++i) {
    counts[i] = i == size - 1 ? left : i == 1 ? 0 : left / 3;
    left -= counts[i];
    if (i < rank) first += counts[i];
  }
  PREPARE();
  CALL(Reduce_scatter, Ireduce_scatter, given, out, counts, affine, compose, comm);
  expect_composed(out, counts[rank], 0, size, first);
  PREPARE();
  CALL(Reduce_scatter_block, Ireduce_scatter_block, given, out, count / size, affine, compose, comm);
  expect_composed(out, count / size, 0, size, rank * (count / size));
}

static void check_moves(int count, const Affine* in, Affine* one, Affine* out, Affine* all) {
  const MPI_Comm comm = MPI_COMM_WORLD;
  Affine* const given = in_place ? all : out;
  int i, other, root;
  memset(all, 1, (size_t)count * (size_t)size * sizeof(Affine));
  if (in_place) memcpy(all + (size_t)count * (size_t)rank, in, (size_t)count * sizeof(Affine));
  CALL(Allgather, Iallgather, in_place ? MPI_IN_PLACE : (const void*)in, count, affine, all, count, affine, comm);
  for (other = 0; other < size; ++other)
    expect_composed(all + (size_t)count * (size_t)other, count, other, other + 1, 0);
  for (other = 0; other < size; ++other)
    for (i = 0; i < count; ++i) given[(size_t)other * (size_t)count + (size_t)i] = value(rank * size + other, i);
  CALL(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : (const void*)out, count, affine, all, count, affine, comm);
  for (other = 0; other < size; ++other) {
    const int from = other * size + rank;
    expect_composed(all + (size_t)count * (size_t)other, count, from, from + 1, 0);
  }
  for (root = 0; root < size; ++root) {
    for (i = 0; i < count; ++i) one[i] = value(rank == root ? root : 99, i);
    CALL(Bcast, Ibcast, one, count, affine, root, comm);
    expect_composed(one, count, root, root + 1, 0);
  }
}

/* --- A gap behind each element */

typedef struct {
  long double many[512];
  double last;
} Padded;

static int num_unaligned;

static void add_padded(void* in, void* inout, int* count, MPI_Datatype* type) {
  const Padded* const left = in;
  Padded* const right = inout;
  int i;
  (void)type;
  num_unaligned += (uintptr_t)in % _Alignof(Padded) != 0 || (uintptr_t)inout % _Alignof(Padded) != 0;
  if (num_unaligned > 0) return;
  for (i = 0; i < *count; ++i) right[i].many[7] += left[i].many[7], right[i].last += left[i].last;
}

static void check_padded(void) {
  const int lengths[2] = {512, 1};
  const MPI_Aint places[2] = {offsetof(Padded, many), offsetof(Padded, last)};
  const MPI_Datatype types[2] = {MPI_LONG_DOUBLE, MPI_DOUBLE};
  Padded* const in = calloc((size_t)size, sizeof(Padded));
  Padded* const out = calloc((size_t)size, sizeof(Padded));
  MPI_Datatype packed, padded;
  MPI_Op sum;
  int i;
  MPI_Type_create_struct(2, lengths, places, types, &packed);
  MPI_Type_create_resized(packed, 0, sizeof(Padded), &padded);
  MPI_Type_commit(&padded);
  MPI_Op_create(add_padded, 1, &sum);
  for (i = 0; i < size; ++i) in[i].many[7] = i, in[i].last = rank;
  CALL(Allreduce, Iallreduce, in, out, size, padded, sum, MPI_COMM_WORLD);
  EXPECT(num_unaligned == 0);
  for (i = 0; i < size; ++i) EXPECT(out[i].many[7] == i * size && out[i].last == size * (size - 1) / 2);
  MPI_Op_free(&sum);
  MPI_Type_free(&padded);
  MPI_Type_free(&packed);
  free(out);
  free(in);
}

/* One process has much, and the others nothing. */
static void check_uneven(void) {
  enum { kMany = 40000 };
  int counts[16] = {kMany}, places[16] = {0}, i;
  Affine* const all = calloc(kMany, sizeof(Affine));
  for (i = 0; rank == 0 && i < kMany; ++i) all[i] = value(0, i);
  CALL(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, affine, all, counts, places, affine, MPI_COMM_WORLD);
  expect_composed(all, kMany, 0, 1, 0);
  free(all);
}

int main(int argc, char** argv) {
  static const int counts[] = {1, 100, 600, 1025, 4099, 9000, 140000};
  int way, which;
  size_t i;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(size <= 16);
  MPI_Type_contiguous(2, MPI_UINT32_T, &affine);
  MPI_Type_commit(&affine);
  MPI_Op_create(compose_all, 0, &compose);
  for (which = 0; which < (int)(sizeof counts / sizeof counts[0]); ++which) {
    const size_t count = (size_t)counts[which];
    Affine* const in = malloc(count * sizeof(Affine));
    Affine* const one = malloc(count * sizeof(Affine));
    Affine* const out = malloc(count * (size_t)size * sizeof(Affine));
    Affine* const all = malloc(count * (size_t)size * sizeof(Affine));
    for (i = 0; i < count; ++i) in[i] = value(rank, (int)i);
    for (way = 0; way < 4; ++way) {
      in_place = way % 2;
      non_blocking = way / 2;
      check_reductions(counts[which], in, out);
      if (count < 10000) check_moves(counts[which], in, one, out, all);
      expect_composed(in, counts[which], rank, rank + 1, 0);
    }
    free(all);
    free(out);
    free(one);
    free(in);
  }
  for (non_blocking = 0; non_blocking < 2; ++non_blocking) {
    check_padded();
    check_uneven();
  }
  MPI_Op_free(&compose);
  MPI_Type_free(&affine);
  if (rank == 0) printf("collective_sizes of %d ranks: as expected\n", size);
  return MPI_Finalize();
}
