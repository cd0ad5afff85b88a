/* Every collective in its three forms, on one group: values that tell who sent them, gaps between elements, in place. */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                             \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      fprintf(stderr, "%s:%d: rank %d: %s is not true\n", __FILE__, __LINE__, rank, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 3);                                                                  \
    }                                                                                                \
  } while (0)

enum { kMost = 64 };
enum Form { kWaiting, kStarted, kPersistent };

static int rank, size;
static const MPI_Comm comm = MPI_COMM_WORLD;

/* Completes a request that was made in `form`. A persistent one runs twice. */
static void finish(MPI_Request* request, enum Form form) {
  if (form == kPersistent) {
    MPI_Start(request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    MPI_Start(request);
  }
  MPI_Wait(request, MPI_STATUS_IGNORE);
  if (form == kPersistent) MPI_Request_free(request);
  CHECK(*request == MPI_REQUEST_NULL);
}

/* Calls MPI_NAME, MPI_INAME or MPI_NAME_init. */
#define CALL(form, Name, Iname, ...)                                                 \
  do {                                                                               \
    MPI_Request request_;                                                            \
    if ((form) == kWaiting) {                                                        \
      MPI_##Name(__VA_ARGS__, comm);                                                 \
    } else {                                                                         \
      if ((form) == kStarted) MPI_I##Iname(__VA_ARGS__, comm, &request_);            \
      if ((form) == kPersistent) MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_); \
      finish(&request_, form);                                                       \
    }                                                                                \
  } while (0)

static void barrier(enum Form form) {
  MPI_Request request;
  if (form == kWaiting) {
    MPI_Barrier(comm);
    return;
  }
  if (form == kStarted) MPI_Ibarrier(comm, &request);
  if (form == kPersistent) MPI_Barrier_init(comm, MPI_INFO_NULL, &request);
  finish(&request, form);
}

static void broadcast(enum Form form, int count) {
  int* data = malloc(sizeof(int) * (size_t)(count + 1));
  for (int root = 0; root < size; ++root) {
    for (int i = 0; i < count; ++i) data[i] = rank == root ? root * 1000 + i : -1;
    CALL(form, Bcast, bcast, data, count, MPI_INT, root);
    for (int i = 0; i < count; ++i) CHECK(data[i] == root * 1000 + i);
  }
  free(data);
}

static void gather_and_scatter(enum Form form) {
  for (int root = 0; root < size; ++root) {
    int mine[2] = {rank * 10, rank * 10 + 1};
    int all[2 * kMost];
    memset(all, -1, sizeof all);
    CALL(form, Gather, gather, mine, 2, MPI_INT, all, 2, MPI_INT, root);
    for (int i = 0; rank == root && i < size; ++i) CHECK(all[2 * i] == i * 10 && all[2 * i + 1] == i * 10 + 1);
    /* In place at the root. */
    memset(all, -1, sizeof all);
    all[2 * rank] = rank * 10;
    all[2 * rank + 1] = rank * 10 + 1;
    CALL(form, Gather, gather, rank == root ? MPI_IN_PLACE : mine, 2, MPI_INT, all, 2, MPI_INT, root);
    for (int i = 0; rank == root && i < size; ++i) CHECK(all[2 * i + 1] == i * 10 + 1);
    for (int i = 0; i < 2 * size; ++i) all[i] = 7 * i;
    CALL(form, Scatter, scatter, all, 2, MPI_INT, mine, 2, MPI_INT, root);
    CHECK(mine[0] == 14 * rank && mine[1] == 14 * rank + 7);
  }
}

/* Rank i has i + 1 elements; their places are in reverse order, with gaps. */
static void varying_parts(enum Form form) {
  int counts[kMost], places[kMost], total = 0;
  for (int i = size - 1; i >= 0; --i) {
    counts[i] = i + 1;
    places[i] = total;
    total += counts[i] + 1;
  }
  int* mine = malloc(sizeof(int) * (size_t)(rank + 1));
  int* all = malloc(sizeof(int) * (size_t)total);
  for (int i = 0; i <= rank; ++i) mine[i] = rank * 100 + i;
  for (int root = 0; root < size; ++root) {
    memset(all, -1, sizeof(int) * (size_t)total);
    CALL(form, Gatherv, gatherv, mine, rank + 1, MPI_INT, all, counts, places, MPI_INT, root);
    for (int i = 0; rank == root && i < size; ++i) {
      for (int k = 0; k <= i; ++k) CHECK(all[places[i] + k] == i * 100 + k);
      CHECK(all[places[i] + i + 1] == -1);
    }
    for (int i = 0; i < total; ++i) all[i] = i;
    CALL(form, Scatterv, scatterv, all, counts, places, MPI_INT, mine, rank + 1, MPI_INT, root);
    for (int i = 0; i <= rank; ++i) CHECK(mine[i] == places[rank] + i);
    for (int i = 0; i <= rank; ++i) mine[i] = rank * 100 + i;
  }
  memset(all, -1, sizeof(int) * (size_t)total);
  CALL(form, Allgatherv, allgatherv, mine, rank + 1, MPI_INT, all, counts, places, MPI_INT);
  for (int i = 0; i < size; ++i)
    for (int k = 0; k <= i; ++k) CHECK(all[places[i] + k] == i * 100 + k);
  free(mine);
  free(all);
}

/* Every second element of the receive buffer. */
static void gaps(enum Form form) {
  MPI_Datatype wide;
  int mine = rank + 1, all[2 * kMost];
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &wide);
  MPI_Type_commit(&wide);
  memset(all, -1, sizeof all);
  CALL(form, Allgather, allgather, &mine, 1, MPI_INT, all, 1, wide);
  for (int i = 0; i < size; ++i) CHECK(all[2 * i] == i + 1 && all[2 * i + 1] == -1);
  all[2 * rank] = rank + 5;
  CALL(form, Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, wide);
  for (int i = 0; i < size; ++i) CHECK(all[2 * i] == i + 5 && all[2 * i + 1] == -1);
  MPI_Type_free(&wide);
}

static void all_to_all(enum Form form, int count) {
  int* out = malloc(sizeof(int) * (size_t)(size * count));
  int* in = malloc(sizeof(int) * (size_t)(size * count));
  int counts[kMost], places[kMost];
  MPI_Datatype types[kMost];
  for (int i = 0; i < size; ++i) {
    counts[i] = count;
    places[i] = i * count;
    types[i] = MPI_INT;
  }
  for (int way = 0; way < 4; ++way) {
    for (int i = 0; i < size * count; ++i) out[i] = rank * 10000 + i / count * 100 + i % count;
    memset(in, -1, sizeof(int) * (size_t)(size * count));
    if (way == 0) CALL(form, Alltoall, alltoall, out, count, MPI_INT, in, count, MPI_INT);
    if (way == 1) CALL(form, Alltoallv, alltoallv, out, counts, places, MPI_INT, in, counts, places, MPI_INT);
    if (way == 2) {
      int bytes[kMost];
      for (int i = 0; i < size; ++i) bytes[i] = places[i] * (int)sizeof(int);
      CALL(form, Alltoallw, alltoallw, out, counts, bytes, types, in, counts, bytes, types);
    }
    if (way == 3) {
      if (form == kPersistent) continue; /* the second run would take the result of the first for its input */
      memcpy(in, out, sizeof(int) * (size_t)(size * count));
      CALL(form, Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, count, MPI_INT);
    }
    for (int i = 0; i < size * count; ++i) CHECK(in[i] == i / count * 10000 + rank * 100 + i % count);
  }
  free(out);
  free(in);
}

/* Not commutative: the matrices a * x + b of integers modulo 1000, composed. */
static void compose(void* left, void* right, int* count, MPI_Datatype* type) {
  const int* l = left;
  int* r = right;
  (void)type;
  for (int i = 0; i < *count; ++i, l += 2, r += 2) {
    const int a = l[0] * r[0] % 1000, b = (l[0] * r[1] + l[1]) % 1000;
    r[0] = a;
    r[1] = b;
  }
}

static void compose_ranks(int first, int last, int i, int* result) {
  result[0] = 1;
  result[1] = 0;
  for (int who = last; who >= first; --who) {
    int factor[2] = {who + 2 + i, 3 * who + 1}, one = 1;
    compose(factor, result, &one, NULL);
  }
}

static void not_commutative(enum Form form, MPI_Op op, MPI_Datatype pair) {
  enum { kPairs = 3 };
  int in[2 * kPairs], out[2 * kPairs], expected[2];
  for (int i = 0; i < kPairs; ++i) {
    in[2 * i] = rank + 2 + i;
    in[2 * i + 1] = 3 * rank + 1;
  }
  for (int root = 0; root < size; ++root) {
    memset(out, -1, sizeof out);
    CALL(form, Reduce, reduce, in, out, kPairs, pair, op, root);
    for (int i = 0; rank == root && i < kPairs; ++i) {
      compose_ranks(0, size - 1, i, expected);
      CHECK(out[2 * i] == expected[0] && out[2 * i + 1] == expected[1]);
    }
  }
  CALL(form, Allreduce, allreduce, in, out, kPairs, pair, op);
  for (int i = 0; i < kPairs; ++i) {
    compose_ranks(0, size - 1, i, expected);
    CHECK(out[2 * i] == expected[0] && out[2 * i + 1] == expected[1]);
  }
  CALL(form, Scan, scan, in, out, kPairs, pair, op);
  for (int i = 0; i < kPairs; ++i) {
    compose_ranks(0, rank, i, expected);
    CHECK(out[2 * i] == expected[0] && out[2 * i + 1] == expected[1]);
  }
  CALL(form, Exscan, exscan, in, out, kPairs, pair, op);
  for (int i = 0; rank > 0 && i < kPairs; ++i) {
    compose_ranks(0, rank - 1, i, expected);
    CHECK(out[2 * i] == expected[0] && out[2 * i + 1] == expected[1]);
  }
}

static void sums(enum Form form, int count) {
  double* in = malloc(sizeof(double) * (size_t)(count * size));
  double* out = malloc(sizeof(double) * (size_t)(count * size));
  int counts[kMost];
  const double all_ranks = size * (size - 1) / 2.0;
  for (int i = 0; i < count * size; ++i) in[i] = rank + i * size;
  CALL(form, Allreduce, allreduce, in, out, count, MPI_DOUBLE, MPI_SUM);
  for (int i = 0; i < count; ++i) CHECK(out[i] == all_ranks + (double)i * size * size);
  CALL(form, Reduce_scatter_block, reduce_scatter_block, in, out, count, MPI_DOUBLE, MPI_SUM);
  for (int i = 0; i < count; ++i) CHECK(out[i] == all_ranks + (double)(rank * count + i) * size * size);
  for (int i = 0; i < size; ++i) counts[i] = i < count ? count : 0;
  CALL(form, Reduce_scatter, reduce_scatter, in, out, counts, MPI_DOUBLE, MPI_SUM);
  for (int i = 0; i < counts[rank]; ++i) CHECK(out[i] == all_ranks + (double)(rank * count + i) * size * size);
  if (form != kPersistent) {
    memcpy(out, in, sizeof(double) * (size_t)(count * size));
    CALL(form, Allreduce, allreduce, MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_MAX);
    for (int i = 0; i < count; ++i) CHECK(out[i] == size - 1 + i * size);
    memcpy(out, in, sizeof(double) * (size_t)(count * size));
    CALL(form, Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_SUM);
    for (int i = 0; i < count; ++i) CHECK(out[i] == all_ranks + (double)(rank * count + i) * size * size);
    memcpy(out, in, sizeof(double) * (size_t)(count * size));
    CALL(form, Scan, scan, MPI_IN_PLACE, out, count, MPI_DOUBLE, MPI_MIN);
    for (int i = 0; i < count; ++i) CHECK(out[i] == i * size);
  }
  free(in);
  free(out);
}

/* Several operations under way at once. */
static void overlapping(void) {
  enum { kMany = 20 };
  MPI_Request requests[kMany];
  int in[kMany], out[kMany];
  for (int i = 0; i < kMany; ++i) {
    in[i] = rank + i;
    MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_SUM, comm, &requests[i]);
  }
  MPI_Waitall(kMany, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < kMany; ++i) CHECK(out[i] == size * (size - 1) / 2 + i * size);
}

/* The root begins another collective before its barrier, and the others after theirs. The standard forbids it, but MPICH and Open MPI bear
 * it, and mpi4py's own suite does it. */
static void other_order(void) {
  int one = 1, sum = 0;
  MPI_Request request;
  if (rank != 0) MPI_Barrier(comm);
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm, &request);
  if (rank == 0) MPI_Barrier(comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(sum == size);
}

int main(int argc, char** argv) {
  MPI_Op op;
  MPI_Datatype pair;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Op_create(compose, 0, &op);
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  for (int form = kWaiting; form <= kPersistent; ++form) {
    barrier((enum Form)form);
    broadcast((enum Form)form, 0);
    broadcast((enum Form)form, 3);
    broadcast((enum Form)form, 100000);
    gather_and_scatter((enum Form)form);
    varying_parts((enum Form)form);
    gaps((enum Form)form);
    all_to_all((enum Form)form, 1);
    all_to_all((enum Form)form, 20000);
    not_commutative((enum Form)form, op, pair);
    sums((enum Form)form, 1);
    sums((enum Form)form, 5000);
  }
  overlapping();
  other_order();
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  if (rank == 0) printf("collectives of %d ranks: as expected\n", size);
  MPI_Finalize();
  return 0;
}
