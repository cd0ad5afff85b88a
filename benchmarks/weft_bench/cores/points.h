/* What the programs of `weft bench cores` share, in C and in C++: what they measure, how often, and what they print.
 *
 *   program BUDGET_S OPERATION:SIZE...
 *
 * Each OPERATION:SIZE is a point. It is run with one round, and then with more, until a run takes an eighth of BUDGET_S: the warm-up.
 * The timed run has so many rounds that it takes about BUDGET_S. The time of a run is the longest that a PE took from the barrier
 * before it.
 *
 * A round is
 *   windows         kWindowSends messages from each PE of the first half to one of the second, and one answer
 *   all_to_one      kFloodSends messages from each PE to PE 0, and a barrier
 *   solver_step     a message to the PE before and to the PE after, and then an all-reduce of one double
 *   a collective    one operation. SIZE is the block of one PE. Reductions add doubles. broadcast, reduce and scan have a barrier
 *                   after each batch of rounds, because some PEs would run far ahead. */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
namespace weft::benchmarks {
#endif

enum { kWindowSends = 64, kFloodSends = 1000 };

enum Operation {
  kWindows,
  kAllToOne,
  kSolverStep,
  kBarrier,
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kAllToAll,
  kReduceScatter,
  kScan,
  kNumOperations
};

static const char* const kOperationNames[kNumOperations] = {
    "windows",    "all_to_one", "solver_step", "barrier",        "broadcast", "reduce",
    "all_reduce", "all_gather", "all_to_all",  "reduce_scatter", "scan"};

struct Point {
  enum Operation operation;
  size_t size_bytes;
};

/* Ends the process if `text` is no OPERATION:SIZE, with SIZE a multiple of 8. */
static inline struct Point parse_point(const char* text) {
  const char* colon = strchr(text, ':');
  struct Point point = {kNumOperations, 0};
  for (int i = 0; colon != NULL && i < kNumOperations; ++i) {
    const size_t length = (size_t)(colon - text);
    if (strlen(kOperationNames[i]) == length && strncmp(text, kOperationNames[i], length) == 0) {
      point.operation = (enum Operation)i;
    }
  }
  char* end = NULL;
  if (point.operation != kNumOperations) point.size_bytes = strtoul(colon + 1, &end, 10);
  if (end == NULL || end == colon + 1 || *end != '\0' || point.size_bytes % sizeof(double) != 0) {
    fprintf(stderr, "benchmark: '%s' is not OPERATION:SIZE with a multiple of 8 bytes\n", text);
    exit(2);
  }
  return point;
}

/* Ends the process if there are fewer than two PEs, or if `text` is no number of seconds above 0. */
static inline double parse_budget(const char* text, int num_pes) {
  const double budget_s = text == NULL ? 0 : strtod(text, NULL);
  if (num_pes < 2 || !(budget_s > 0)) {
    fprintf(stderr, "benchmark: usage, with 2 PEs or more: BUDGET_S OPERATION:SIZE...\n");
    exit(2);
  }
  return budget_s;
}

/* The bytes that one PE sends, or receives, in a round. */
static inline size_t bytes_of_round(struct Point point, int num_pes) {
  switch (point.operation) {
    case kWindows:
      return kWindowSends * point.size_bytes;
    case kSolverStep:
      return 2 * point.size_bytes;
    case kAllGather:
    case kAllToAll:
    case kReduceScatter:
      return (size_t)num_pes * point.size_bytes;
    default:
      return point.size_bytes;
  }
}

/* The rounds of broadcast, reduce and scan between two barriers: at most 64, and 4 MiB. */
static inline long rounds_of_batch(struct Point point) {
  const size_t rounds = ((size_t)4 << 20) / (point.size_bytes + 1);
  return rounds < 1 ? 1 : rounds > 64 ? 64 : (long)rounds;
}

/* A run of a point. All PEs compute the same. */
struct Run {
  long rounds;
  int is_timed;    /* the last one */
  long warmup;     /* the rounds of the runs before it */
  double before_s; /* of the run before, if that had as many rounds; else 0 */
};

static const struct Run kFirstRun = {1, 0, 0, 0};

/* Every number of rounds of the warm-up is run twice, and the faster run counts: one that was disturbed says nothing of how
 * many rounds fill the budget. */
static inline struct Run run_after(struct Run run, double elapsed_s, double budget_s) {
  struct Run next = {run.rounds, 0, run.warmup + run.rounds, elapsed_s > 1e-9 ? elapsed_s : 1e-9};
  if (run.before_s == 0) return next;
  const double fastest_s = next.before_s < run.before_s ? next.before_s : run.before_s;
  next.before_s = 0;
  next.is_timed = fastest_s * 8 >= budget_s;
  const double rounds = (double)run.rounds * budget_s / fastest_s / (next.is_timed ? 1 : 5);
  const double most = 16 * (double)run.rounds;
  next.rounds = rounds < 1 ? 1 : (long)(rounds < most ? rounds : most);
  return next;
}

/* Prints the figure of a timed run: million messages per second, or microseconds of a round. */
static inline void print_figure(struct Point point, struct Run run, double elapsed_s, int num_pes) {
  double value = elapsed_s / (double)run.rounds * 1e6;
  if (point.operation == kWindows) value = (double)(kWindowSends * (num_pes / 2)) / value;
  if (point.operation == kAllToOne) value = (double)(kFloodSends * (num_pes - 1)) / value;
  printf("{\"operation\": \"%s\", \"size_bytes\": %zu, \"value\": %.9g, \"warmup\": %ld}\n",
         kOperationNames[point.operation], point.size_bytes, value, run.warmup);
  fflush(stdout);
}

#ifdef __cplusplus
}
#endif
