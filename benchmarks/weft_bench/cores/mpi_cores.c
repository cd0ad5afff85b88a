/* The operations of points.h, asked of an MPI library. `weft bench cores` compiles it with the mpicc of each. */
#define _GNU_SOURCE
#include <mpi.h>

#include "pin.h"
#include "points.h"

static const MPI_Comm kWorld = MPI_COMM_WORLD;

static int rank, size;
static double *outgoing, *incoming;
static MPI_Request requests[kWindowSends];

/* The place of message `number` in a buffer of messages of so many bytes. */
static char* place(double* buffer, int number, size_t bytes) {
  return (char*)buffer + (size_t)number * bytes;
}

static void send_window(int bytes) {
  const int half = size / 2;
  if (rank >= 2 * half) return;
  const int is_sender = rank < half, partner = is_sender ? rank + half : rank - half;
  char token = 0;
  for (int i = 0; i < kWindowSends; ++i) {
    if (is_sender) {
      MPI_Isend(place(outgoing, i, (size_t)bytes), bytes, MPI_BYTE, partner, 1, kWorld, &requests[i]);
    } else {
      MPI_Irecv(place(incoming, i, (size_t)bytes), bytes, MPI_BYTE, partner, 1, kWorld, &requests[i]);
    }
  }
  MPI_Waitall(kWindowSends, requests, MPI_STATUSES_IGNORE);
  if (is_sender) {
    MPI_Recv(&token, 1, MPI_BYTE, partner, 2, kWorld, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&token, 1, MPI_BYTE, partner, 2, kWorld);
  }
}

static void flood(int bytes) {
  if (rank == 0) {
    for (int i = 0; i < kFloodSends * (size - 1); ++i) {
      MPI_Recv(incoming, bytes, MPI_BYTE, MPI_ANY_SOURCE, 3, kWorld, MPI_STATUS_IGNORE);
    }
  } else {
    for (int i = 0; i < kFloodSends; ++i) MPI_Send(outgoing, bytes, MPI_BYTE, 0, 3, kWorld);
  }
  MPI_Barrier(kWorld);
}

static void solver_step(int bytes) {
  const int before = (rank + size - 1) % size, after = (rank + 1) % size;
  MPI_Irecv(place(incoming, 0, (size_t)bytes), bytes, MPI_BYTE, before, 4, kWorld, &requests[0]);
  MPI_Irecv(place(incoming, 1, (size_t)bytes), bytes, MPI_BYTE, after, 5, kWorld, &requests[1]);
  MPI_Isend(place(outgoing, 0, (size_t)bytes), bytes, MPI_BYTE, after, 4, kWorld, &requests[2]);
  MPI_Isend(place(outgoing, 1, (size_t)bytes), bytes, MPI_BYTE, before, 5, kWorld, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  const double one = 1;
  double sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, kWorld);
}

static void run_round(struct Point point) {
  const int bytes = (int)point.size_bytes, count = bytes / (int)sizeof(double);
  switch (point.operation) {
    case kWindows:
      return send_window(bytes);
    case kAllToOne:
      return flood(bytes);
    case kSolverStep:
      return solver_step(bytes);
    case kBroadcast:
      MPI_Bcast(rank == 0 ? outgoing : incoming, bytes, MPI_BYTE, 0, kWorld);
      return;
    case kReduce:
      MPI_Reduce(outgoing, incoming, count, MPI_DOUBLE, MPI_SUM, 0, kWorld);
      return;
    case kAllReduce:
      MPI_Allreduce(outgoing, incoming, count, MPI_DOUBLE, MPI_SUM, kWorld);
      return;
    case kAllGather:
      MPI_Allgather(outgoing, bytes, MPI_BYTE, incoming, bytes, MPI_BYTE, kWorld);
      return;
    case kAllToAll:
      MPI_Alltoall(outgoing, bytes, MPI_BYTE, incoming, bytes, MPI_BYTE, kWorld);
      return;
    case kReduceScatter:
      MPI_Reduce_scatter_block(outgoing, incoming, count, MPI_DOUBLE, MPI_SUM, kWorld);
      return;
    case kScan:
      MPI_Scan(outgoing, incoming, count, MPI_DOUBLE, MPI_SUM, kWorld);
      return;
    default:
      MPI_Barrier(kWorld);
  }
}

/* Every element of `outgoing` is 1. */
static void expect_sum(struct Point point) {
  double expected = size;
  switch (point.operation) {
    case kReduce:
      if (rank != 0) return;
      break;
    case kScan:
      expected = rank + 1;
      break;
    case kAllReduce:
    case kReduceScatter:
      break;
    default:
      return;
  }
  const double found = incoming[point.size_bytes / sizeof(double) - 1];
  if (found == expected) return;
  fprintf(stderr, "benchmark: %s gave %g on rank %d in place of %g\n", kOperationNames[point.operation],
          found, rank, expected);
  MPI_Abort(kWorld, 3);
}

/* The longest time of a rank, in seconds. */
static double time_run(struct Point point, long rounds) {
  const int runs_ahead =
      point.operation == kBroadcast || point.operation == kReduce || point.operation == kScan;
  const long batch = rounds_of_batch(point);
  MPI_Barrier(kWorld);
  const double start = MPI_Wtime();
  for (long i = 1; i <= rounds; ++i) {
    run_round(point);
    if (runs_ahead && (i % batch == 0 || i == rounds)) MPI_Barrier(kWorld);
  }
  const double elapsed_s = MPI_Wtime() - start;
  double longest_s = 0;
  MPI_Allreduce(&elapsed_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, kWorld);
  if (point.size_bytes > 0) expect_sum(point);
  return longest_s;
}

static double* ones(size_t bytes) {
  double* const buffer = malloc(bytes + sizeof(double));
  if (buffer == NULL) {
    fprintf(stderr, "benchmark: no memory for %zu bytes\n", bytes);
    MPI_Abort(kWorld, 3);
  }
  for (size_t i = 0; i <= bytes / sizeof(double); ++i) buffer[i] = 1;
  return buffer;
}

static void print_library(void) {
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(library, &length);
  for (char* c = library; *c != '\0'; ++c) {
    if (*c < ' ' || *c == '"' || *c == '\\') *c = ' ';
  }
  printf("{\"library\": \"%s\"}\n", library);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(kWorld, &rank);
  MPI_Comm_size(kWorld, &size);
  const double budget_s = parse_budget(argc > 1 ? argv[1] : NULL, size);
  pin(rank);
  if (rank == 0) print_library();
  size_t most = 0;
  for (int i = 2; i < argc; ++i) {
    const size_t bytes = bytes_of_round(parse_point(argv[i]), size);
    if (bytes > most) most = bytes;
  }
  outgoing = ones(most);
  incoming = ones(most);
  for (int i = 2; i < argc; ++i) {
    const struct Point point = parse_point(argv[i]);
    struct Run run = kFirstRun;
    double elapsed_s = time_run(point, run.rounds);
    while (!run.is_timed) {
      run = run_after(run, elapsed_s, budget_s);
      elapsed_s = time_run(point, run.rounds);
    }
    if (rank == 0) print_figure(point, run, elapsed_s, size);
  }
  free(outgoing);
  free(incoming);
  MPI_Finalize();
  return 0;
}
