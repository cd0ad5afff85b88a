// One step of load balancing, as the PE sees it that has made the collection: it collects the loads of all elements, decides,
// and counts the PEs that have moved their elements.
//
// It sends nothing. The numbers are claims of peers: each one is checked before use. Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/base/status.h"

#include "balance/snapshot.h"
#include "balance/strategy.h"
#include "balance/summary.h"

namespace weft::chare {

// An element at the sync point, as its PE reports it. Travels as its bytes.
struct ReportedLoad {
  std::uint64_t index = 0;
  double load_s = 0;
  std::uint64_t can_move = 0;  // 0 or 1
};
static_assert(std::is_trivially_copyable_v<ReportedLoad> && sizeof(ReportedLoad) == 24);

// An element that shall move.
struct PlannedMove {
  std::uint64_t index = 0;
  std::uint64_t to_pe = 0;
};
static_assert(std::is_trivially_copyable_v<PlannedMove> && sizeof(PlannedMove) == 16);

// What one PE has to do.
struct PlanOfPe {
  std::vector<PlannedMove> moves;  // its elements that leave
  std::uint64_t num_arrivals = 0;  // elements that come
  bool is_empty() const { return moves.empty() && num_arrivals == 0; }
};

class SyncStep {
 public:
  using Clock = std::chrono::steady_clock;

  // Of a collection with `size` elements, at least one.
  SyncStep(std::uint64_t collection, std::uint64_t size, int num_pes);

  // Elements of that PE. kInvalidArgument, which says what is wrong: an element does not exist, was reported before, or its
  // load is no load.
  base::Status add(int pe, std::span<const ReportedLoad> loads);
  // Whether all elements have been reported.
  bool is_complete() const { return num_reported_ == is_reported_.size(); }

  // Runs the strategy. Returns one plan for each PE. REQUIRES: is_complete().
  base::Result<std::vector<PlanOfPe>> decide(balance::Strategy& strategy);
  // REQUIRES: decided.
  const balance::Snapshot& snapshot() const { return snapshot_; }
  const balance::Summary& summary() const { return summary_; }
  double decision_s() const { return decision_s_; }

  // The PE has carried out its plan. kInvalidArgument: it had none, or has said so before.
  base::Status done(int pe, std::uint64_t moves, std::uint64_t bytes_moved);
  // Whether all PEs with a plan have carried it out. REQUIRES: decided.
  bool is_done() const { return num_plans_ == 0; }
  std::uint64_t moves() const { return moves_; }
  std::uint64_t bytes_moved() const { return bytes_moved_; }
  // The time since decide() was called.
  double elapsed_s() const;

 private:
  std::vector<bool> is_reported_;
  std::uint64_t num_reported_ = 0;
  balance::Snapshot snapshot_;
  balance::Summary summary_;
  Clock::time_point began_;
  double decision_s_ = 0;
  std::vector<std::uint64_t> most_moves_;  // of each PE whose plan is under way
  std::vector<bool> has_plan_;
  std::uint64_t num_plans_ = 0;
  std::uint64_t moves_ = 0;
  std::uint64_t bytes_moved_ = 0;
};

}  // namespace weft::chare
