/* One process of a collective passes another count than the others. The standard calls that an error of the program. All processes return,
 * with success or MPI_ERR_TRUNCATE. One with success has the result of a right call, and no process writes outside of its buffer.
 *
 * Counts are on the same side of the sizes at which the algorithm changes, see docs/mpi.md. Argument 1: "small" or "all" sizes; argument 2:
 * one collective instead of all. */
#include <mpi.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kGuardInts = 64, kGuard = 0x5a5a5a5a, kUntouched = -7 };

typedef enum {
  kBcast, kGather, kScatter, kAllgather, kAlltoall, kReduce, kAllreduce, kReduceScatterBlock, kNumInter,
  kReduceScatter = kNumInter, kScan, kExscan, kGatherv, kScatterv, kAllgatherv, kAlltoallv, kNumIntra,
  kNeighborAllgather = kNumIntra, kNeighborAlltoall, kNumKinds
} Kind;
static const char* const kNames[kNumKinds] = {
    "bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reduce_scatter_block", "reduce_scatter", "scan",
    "exscan", "gatherv", "scatterv", "allgatherv", "alltoallv", "neighbor_allgather", "neighbor_alltoall"};

/* The communicator: this process in its group, and the group that messages come from (of one group: the same). */
typedef struct {
  MPI_Comm comm;
  int is_inter, rank, size, peers, first_peer; /* first_peer: its rank in MPI_COMM_WORLD */
} Place;

/* What a process passes. */
typedef struct {
  Kind kind;
  int way;         /* 0 waits, 1 gives a request, 2 is persistent */
  int root;        /* in the group of the root */
  int sent;        /* elements of a part */
  int received;
  MPI_Op op;
} Call;

static int world_rank, world_size;
static const char* only; /* of the collectives */

static void fail(const Call* call, const char* what, int detail) {
  fprintf(stderr, "rank %d of %d: %s, way %d, root %d, counts %d and %d: %s (%d)\n", world_rank, world_size, kNames[call->kind],
          call->way, call->root, call->sent, call->received, what, detail);
  exit(1);
}

/* Element i of the part for process `to` that a process of MPI_COMM_WORLD gives. */
static int value(int from, int to, int i) { return 1000 * (from + 1) + 100000 * to + i % 97; }

static void add(void* in, void* inout, int* count, MPI_Datatype* type) {
  int i;
  (void)type;
  for (i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

/* The number of parts in the send buffer and in the receive buffer. */
static int parts_sent(const Place* at, Kind kind) {
  if (kind == kScatter || kind == kScatterv || kind == kAlltoall || kind == kAlltoallv) return at->peers;
  if (kind == kReduceScatterBlock) return at->size * at->peers;
  if (kind == kReduceScatter) return at->size;
  return kind == kNeighborAlltoall ? 2 : 1;
}
static int parts_received(const Place* at, Kind kind) {
  if (kind == kGather || kind == kGatherv || kind == kAllgather || kind == kAllgatherv) return at->peers;
  if (kind == kAlltoall || kind == kAlltoallv) return at->peers;
  if (kind == kReduceScatterBlock && at->is_inter) return at->peers;
  return kind == kNeighborAllgather || kind == kNeighborAlltoall ? 2 : 1;
}

/* In groups of two the first one has the root. */
static int has_root(const Place* at) { return !at->is_inter || at->first_peer != 0; }
static int is_root(const Place* at, const Call* call) { return has_root(at) && at->rank == call->root; }
static int root_argument(const Place* at, const Call* call) {
  if (!at->is_inter || !has_root(at)) return call->root;
  return is_root(at, call) ? MPI_ROOT : MPI_PROC_NULL;
}
/* Whether the call writes the receive buffer. */
static int receives(const Place* at, const Call* call) {
  const Kind kind = call->kind;
  if (kind == kGather || kind == kGatherv || kind == kReduce) return is_root(at, call);
  if (kind == kBcast) return !is_root(at, call) && (!at->is_inter || !has_root(at));
  if (kind == kScatter || kind == kScatterv) return !at->is_inter || !has_root(at);
  return kind != kExscan || at->rank > 0;
}

/* Element i of part `part` of the result. */
static int expected(const Place* at, const Call* call, int part, int i) {
  const int root = at->is_inter ? at->first_peer + call->root : call->root;
  int from, first = at->first_peer, last = at->first_peer + at->peers - 1, to = 0, sum = 0;
  switch (call->kind) {
    case kBcast: return value(root, 0, i);
    case kScatter: case kScatterv: return value(root, at->rank, i);
    case kGather: case kGatherv: case kAllgather: case kAllgatherv: return value(at->first_peer + part, 0, i);
    case kAlltoall: case kAlltoallv: return value(at->first_peer + part, at->rank, i);
    case kNeighborAllgather: return value((at->rank + (part == 0 ? at->size - 1 : 1)) % at->size, 0, i);
    case kNeighborAlltoall: return value((at->rank + (part == 0 ? at->size - 1 : 1)) % at->size, 1 - part, i);
    case kReduceScatterBlock: to = at->rank * (at->is_inter ? at->peers : 1) + part; break;
    case kReduceScatter: to = at->rank; break;
    case kScan: last = at->rank; break;
    case kExscan: last = at->rank - 1; break;
    default: break;
  }
  for (from = first; from <= last; ++from) sum += value(from, to, i);
  return sum;
}

#define CALL(name, started, ...)                                     \
  (call->way == 0   ? MPI_##name(__VA_ARGS__)                        \
   : call->way == 1 ? MPI_##started(__VA_ARGS__, &request)           \
                    : MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request))

static int make(const Place* at, const Call* call, int* out, int* in) {
  MPI_Request request = MPI_REQUEST_NULL;
  const MPI_Comm comm = at->comm;
  const int root = root_argument(at, call), sent = call->sent, received = call->received;
  int* const whole = is_root(at, call) ? out : in; /* of a broadcast */
  int counts_out[64], counts_in[64], places_out[64], places_in[64], i, code = MPI_SUCCESS;
  for (i = 0; i < 64; ++i) counts_out[i] = sent, counts_in[i] = received, places_out[i] = i * sent, places_in[i] = i * received;
  switch (call->kind) {
    case kBcast: code = CALL(Bcast, Ibcast, whole, received, MPI_INT, root, comm); break;
    case kGather: code = CALL(Gather, Igather, out, sent, MPI_INT, in, received, MPI_INT, root, comm); break;
    case kScatter: code = CALL(Scatter, Iscatter, out, sent, MPI_INT, in, received, MPI_INT, root, comm); break;
    case kAllgather: code = CALL(Allgather, Iallgather, out, sent, MPI_INT, in, received, MPI_INT, comm); break;
    case kAlltoall: code = CALL(Alltoall, Ialltoall, out, sent, MPI_INT, in, received, MPI_INT, comm); break;
    case kReduce: code = CALL(Reduce, Ireduce, out, in, sent, MPI_INT, call->op, root, comm); break;
    case kAllreduce: code = CALL(Allreduce, Iallreduce, out, in, sent, MPI_INT, call->op, comm); break;
    case kReduceScatterBlock:
      code = CALL(Reduce_scatter_block, Ireduce_scatter_block, out, in, at->is_inter ? sent * at->peers : sent, MPI_INT, call->op, comm);
      break;
    case kReduceScatter: code = CALL(Reduce_scatter, Ireduce_scatter, out, in, counts_out, MPI_INT, call->op, comm); break;
    case kScan: code = CALL(Scan, Iscan, out, in, sent, MPI_INT, call->op, comm); break;
    case kExscan: code = CALL(Exscan, Iexscan, out, in, sent, MPI_INT, call->op, comm); break;
    case kGatherv: code = CALL(Gatherv, Igatherv, out, sent, MPI_INT, in, counts_in, places_in, MPI_INT, root, comm); break;
    case kScatterv: code = CALL(Scatterv, Iscatterv, out, counts_out, places_out, MPI_INT, in, received, MPI_INT, root, comm); break;
    case kAllgatherv: code = CALL(Allgatherv, Iallgatherv, out, sent, MPI_INT, in, counts_in, places_in, MPI_INT, comm); break;
    case kAlltoallv:
      code = CALL(Alltoallv, Ialltoallv, out, counts_out, places_out, MPI_INT, in, counts_in, places_in, MPI_INT, comm);
      break;
    case kNeighborAllgather: code = CALL(Neighbor_allgather, Ineighbor_allgather, out, sent, MPI_INT, in, received, MPI_INT, comm); break;
    case kNeighborAlltoall: code = CALL(Neighbor_alltoall, Ineighbor_alltoall, out, sent, MPI_INT, in, received, MPI_INT, comm); break;
    default: break;
  }
  if (code == MPI_SUCCESS && call->way == 2) code = MPI_Start(&request);
  if (code == MPI_SUCCESS && call->way != 0) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  return code;
}

/* Makes the call with buffers that just fit, and checks what it has done. Returns the error class. */
static int check(const Place* at, const Call* call) {
  const int num_out = parts_sent(at, call->kind) * (call->kind == kBcast ? call->received : call->sent);
  const int num_in = parts_received(at, call->kind) * call->received;
  int* const out = malloc((size_t)(num_out + 1) * sizeof(int));
  int* const guarded = malloc((size_t)(num_in + 2 * kGuardInts) * sizeof(int));
  int* const in = guarded + kGuardInts;
  const int part_out = call->kind == kBcast ? call->received : call->sent;
  int i, class = -1;
  for (i = 0; i < num_out; ++i) out[i] = value(world_rank, i / part_out, i % part_out);
  for (i = -kGuardInts; i < num_in + kGuardInts; ++i) in[i] = i < 0 || i >= num_in ? kGuard : kUntouched;
  MPI_Error_class(make(at, call, out, in), &class);
  if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE) fail(call, "another error class", class);
  for (i = -kGuardInts; i < num_in + kGuardInts; ++i)
    if ((i < 0 || i >= num_in) && in[i] != kGuard) fail(call, "memory outside of the buffer was written", i);
  for (i = 0; i < num_in && class == MPI_SUCCESS && receives(at, call); ++i)
    if (in[i] != expected(at, call, i / call->received, i % call->received)) fail(call, "success with a wrong element", i);
  for (i = 0; i < num_out; ++i)
    if (out[i] != value(world_rank, i / part_out, i % part_out)) fail(call, "the send buffer was written", i);
  free(guarded);
  free(out);
  return class;
}

/* Process `wrong` passes `other`, in the receive alone if `receive_only`; -1: all pass the same. Some process fails, and it does if its
   result depends on all. */
static void check_counts(const Place* at, Kind kind, MPI_Op op, int wrong, int count, int other, int receive_only) {
  Call call;
  int mine, someone = 0;
  const int depends_on_all = kind == kAllreduce || kind == kAllgather || kind == kAllgatherv || kind == kReduceScatter;
  call.kind = kind;
  call.op = op;
  for (call.way = 0; call.way < (count < 1000 ? 3 : 1); ++call.way) {
    for (call.root = 0; call.root < (at->is_inter ? 1 : at->size); call.root += at->size > 2 ? at->size - 1 : 1) {
      call.sent = world_rank == wrong && !receive_only ? other : count;
      call.received = world_rank == wrong ? other : count;
      mine = check(at, &call) != MPI_SUCCESS;
      if (wrong < 0 && mine) fail(&call, "a right call failed", mine);
      if (wrong >= 0 && !mine && depends_on_all && !at->is_inter && !receive_only && at->size > 1 && call.received > 0)
        fail(&call, "success without the data of all", wrong);
      MPI_Allreduce(&mine, &someone, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      /* The receive count is not significant at the other processes. */
      if (wrong >= 0 && !someone && !receive_only && world_size > 1 && !at->is_inter) fail(&call, "all had success", wrong);
    }
  }
}

static void check_all(const Place* at, Kind first, Kind last, MPI_Op ordered, int all_sizes) {
  static const int counts[2] = {4, 30000};
  static const int others[2][3] = {{0, 2, 9}, {28000, 33000, 30001}};
  int kind, wrong, i, k;
  for (kind = first; kind < (int)last; ++kind) {
    if (only != NULL && strcmp(only, kNames[kind]) != 0) continue;
    for (i = 0; i < (all_sizes ? 2 : 1); ++i) {
      check_counts(at, (Kind)kind, MPI_SUM, -1, counts[i], 0, 0);
      for (wrong = 0; wrong < world_size; ++wrong) {
        for (k = 0; k < 3; ++k) {
          check_counts(at, (Kind)kind, MPI_SUM, wrong, counts[i], others[i][k], 0);
          if (kind >= kReduce && kind <= kExscan && i == 0)
            check_counts(at, (Kind)kind, ordered, wrong, counts[i], others[i][k], 0);
          if (kind < kReduce || kind > kExscan) check_counts(at, (Kind)kind, MPI_SUM, wrong, counts[i], others[i][k], 1);
        }
      }
    }
  }
}

/* One process asks for more memory than there is. It reduces in place: two buffers of that size would overlap. The others reduce as much as
 * makes them use the algorithm for large data, too. */
static void check_no_memory(const Place* at, MPI_Op ordered) {
  enum { kLarge = 300000 };
  const MPI_Count many = (MPI_Count)1 << 50;
  static int in[kLarge], out[kLarge];
  int wrong, which, code = MPI_SUCCESS, class;
  for (wrong = 0; wrong < world_size; ++wrong) {
    /* Alone, a process needs no memory to scan or reduce all in place. */
    for (which = world_size > 1 ? 0 : 1; which < (world_size > 1 ? 3 : 2); ++which) {
      const MPI_Count count = world_rank == wrong ? many : which == 1 ? kLarge : 4;
      const void* const given = world_rank == wrong && (which != 1 || wrong == 0) ? MPI_IN_PLACE : in;
      switch (which) {
        case 0: code = MPI_Scan_c(given, out, count, MPI_INT, MPI_SUM, at->comm); break;
        case 1: code = MPI_Reduce_c(given, out, count, MPI_INT, MPI_SUM, 0, at->comm); break;
        default: code = MPI_Allreduce_c(given, out, count, MPI_INT, ordered, at->comm);
      }
      MPI_Error_class(code, &class);
      /* In a scan and an all-reduce a process may first hear of the wrong size. */
      if (world_rank == wrong ? class != MPI_ERR_NO_MEM && (which == 1 || class != MPI_ERR_TRUNCATE) : class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE) {
        fprintf(stderr, "rank %d: error class %d of call %d where rank %d has no memory\n", world_rank, class, which, wrong);
        exit(1);
      }
    }
  }
}

int main(int argc, char** argv) {
  const int all_sizes = argc > 1 && strcmp(argv[1], "all") == 0;
  const int periods[1] = {1};
  MPI_Op ordered;
  MPI_Comm half;
  Place one = {MPI_COMM_NULL, 0, 0, 0, 0, 0}, two, ring;
  MPI_Init(&argc, &argv);
  only = argc > 2 ? argv[2] : NULL;
  MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size);
  MPI_Op_create(add, 0, &ordered);
  MPI_Comm_dup(MPI_COMM_WORLD, &one.comm);
  MPI_Comm_set_errhandler(one.comm, MPI_ERRORS_RETURN);
  one.rank = world_rank;
  one.size = one.peers = world_size;
  check_no_memory(&one, ordered);
  check_all(&one, kBcast, kNumIntra, ordered, all_sizes);
  if (world_size > 2) {
    const int num_first = world_size / 2, is_first = world_rank < num_first;
    ring = two = one;
    MPI_Cart_create(one.comm, 1, &world_size, periods, 0, &ring.comm);
    MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
    check_all(&ring, kNeighborAllgather, kNumKinds, ordered, all_sizes);
    MPI_Comm_split(one.comm, is_first, world_rank, &half);
    MPI_Intercomm_create(half, 0, one.comm, is_first ? num_first : 0, 3, &two.comm);
    MPI_Comm_set_errhandler(two.comm, MPI_ERRORS_RETURN);
    two.is_inter = 1;
    MPI_Comm_rank(two.comm, &two.rank);
    MPI_Comm_size(two.comm, &two.size);
    MPI_Comm_remote_size(two.comm, &two.peers);
    two.first_peer = is_first ? num_first : 0;
    check_all(&two, kBcast, kNumInter, ordered, all_sizes);
    MPI_Comm_free(&two.comm);
    MPI_Comm_free(&half);
    MPI_Comm_free(&ring.comm);
  }
  MPI_Comm_free(&one.comm);
  MPI_Op_free(&ordered);
  if (world_rank == 0) printf("wrong counts on %d ranks: all returned\n", world_size);
  return MPI_Finalize();
}
