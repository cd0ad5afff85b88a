// Moves ranks between PEs. All ranks of the job are in the call, so no message of theirs is under way.
//
// A PE begins when all of its ranks wait in take_part():
//   0. PE 0 hears from all PEs how many messages their ranks have sent, and tells each how many are for its ranks. When all of these
//      have come, the PE goes on. If a rank has messages that it has not received, no rank moves.
//   1. The first rank of each PE, its leader, sends the memory of the ranks that leave, and receives that of those that come.
//   2. When all PEs have done so, each replaces the map of ranks and the engines of its ranks.
//   3. PE 0 waits until all have done that, and tells them. Then ranks run again.
// A protection is a move to the same PEs, with a copy of all memory in place of step 1. So a rank goes on from a copy as after a move.
// Quiescence detection would not do: small messages of ranks are not counted, and a PE without work need not have come here.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/runtime/future.h"
#include "weft/runtime/task.h"

#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/p2p/rank_engines.h"
#include "ranks/hosted_ranks.h"

namespace weft::mpi {

class RankMoves {
 public:
  // Makes that of this PE, once in the process. REQUIRES: the process has several ranks, and no message has come yet. All must outlive it.
  static void begin(HostedRanks& ranks, runtime::Runtime& runtime, RankEngines& engines);
  // REQUIRES: begin() has been called.
  static RankMoves& of_this_pe() { return *of_this_pe_; }

  RankMoves(HostedRanks& ranks, runtime::Runtime& runtime, RankEngines& engines);
  RankMoves(const RankMoves&) = delete;
  RankMoves& operator=(const RankMoves&) = delete;

  // --- On the stacks of all ranks of the job
  // All have agreed on the same map.
  void plan(const RankMap& map);
  // All have agreed to protect their state.
  void plan_protection();
  bool is_planned() const { return next_.has_value(); }
  // REQUIRES: is_planned().
  int next_pe_of(int rank) const { return next_->pe_of(rank); }
  // Waits until the move is over. Returns on the PE that the map says, which may be in another process. REQUIRES: is_planned(), and the
  // rank has no engine in use.
  static void take_part();
  // Why the last move has not taken place; empty if it has.
  const std::string& failure() const { return failure_; }

  // In a job that has begun again, on all PEs, before ranks run: those of the protected state come, if there is one. Returns false if the
  // runtime has failed.
  bool restore();

 private:
  // The memory of a rank, as it is announced.
  struct Announcement {
    std::int32_t rank = 0;
    std::int32_t num_ranges = 0;
    weft_mpi_host_range ranges[WEFT_MPI_HOST_MOST_RANGES] = {};
  };
  using Sends = std::vector<Ref<SendRequest>>;

  void join();
  runtime::Task<> move();
  // Ends when all PEs have called it. Returns the sum of the numbers that they have given for this PE. `for_pes`: one for each PE.
  runtime::Future<std::uint64_t> sum_over_pes(std::span<const std::uint64_t> for_pes);
  void on_numbers(int from_pe, std::span<const std::uint64_t> numbers);
  void on_numbers_for_sum(int from_pe, std::span<const std::uint64_t> numbers);
  runtime::Task<> wait_for_messages();
  runtime::Task<> wait_for_pes();
  CollectiveContext leaders_context() const;
  // Sets the failure if a rank of any PE has messages left.
  runtime::Task<> check_messages(CollectiveContext context);
  runtime::Task<> exchange(CollectiveContext context);
  runtime::Task<> protect();
  runtime::Task<> restore_ranks();
  void send_rank(const CollectiveContext& context, int rank, Announcement& announcement, Sends& sends);
  runtime::Task<> receive_rank(CollectiveContext context, int rank);
  bool has_queued_ranks() const;
  void finish();

  static inline RankMoves* of_this_pe_ = nullptr;

  HostedRanks& ranks_;
  runtime::Runtime& runtime_;
  RankEngines& engines_;
  std::optional<RankMap> next_;  // while a move is planned or under way
  bool protects_ = false;
  bool has_restored_ = false;
  int num_waiting_ = 0;
  std::string failure_;
  std::optional<runtime::Future<std::uint64_t>> sum_;  // while this PE waits for it
  // On PE 0, of the sums that are being made.
  std::vector<std::uint64_t> sums_;
  std::vector<bool> has_given_;
  int num_given_ = 0;
};

}  // namespace weft::mpi
