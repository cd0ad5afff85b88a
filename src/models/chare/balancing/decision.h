// Decision: what a strategy has decided about the elements of one collection, on the PE that has made it: the moves of each
// PE, and the PEs that have not carried them out yet.
//
// It sends nothing. The numbers of PEs are claims: each one is checked before use. Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/balance/snapshot.h"
#include "weft/base/pup.h"
#include "weft/base/status.h"

#include "balance/strategy.h"
#include "balance/summary.h"
#include "models/chare/balancing/options.h"
#include "models/chare/balancing/pace.h"

namespace weft::chare {

// An element that shall move.
struct PlannedMove {
  std::uint64_t index = 0;
  std::uint64_t to_pe = 0;
};
static_assert(std::is_trivially_copyable_v<PlannedMove> && sizeof(PlannedMove) == 16);

// The part of a decision that one PE carries out.
struct PlanOfPe {
  std::vector<PlannedMove> moves;  // its elements that leave
  std::uint64_t num_arrivals = 0;  // elements that come
  bool is_empty() const { return moves.empty() && num_arrivals == 0; }
};

class Decision {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Decision(int num_pes)
      : paces_(static_cast<std::size_t>(num_pes)),
        most_moves_(static_cast<std::size_t>(num_pes)),
        has_plan_(static_cast<std::size_t>(num_pes)) {}

  // Elements of that PE have worked at that pace since their last reports. kInvalidArgument: it is none.
  base::Status add_pace(int pe, const Pace& pace);

  // Runs the strategy. Returns one plan for each PE. kInvalidArgument: the snapshot is none, or what the strategy has decided does
  // not fit it. Exceptions of the strategy pass.
  base::Result<std::vector<PlanOfPe>> decide(const balance::Snapshot& snapshot, balance::Strategy& strategy);

  // The PE has carried out its plan. kInvalidArgument: it had none, or has said so before.
  base::Status done(int pe, std::uint64_t moves, std::uint64_t bytes_moved);
  // As done(pe, moves, bytes_moved), with the numbers from a message.
  base::Status done(int pe, Pup& message);
  // Whether all PEs with a plan have carried it out. REQUIRES: decided.
  bool is_done() const { return num_plans_ == 0; }
  std::uint64_t moves() const { return moves_; }
  std::uint64_t bytes_moved() const { return bytes_moved_; }
  // The time since decide() was called, or since construction if nothing was to be decided.
  Clock::duration elapsed() const { return Clock::now() - began_; }
  // The report of the step with that number, from 1. REQUIRES: is_done().
  StepReport report(std::string collection, std::uint64_t step, std::string_view strategy) const;

 protected:
  static base::Status invalid(std::string text) {
    return {base::StatusCode::kInvalidArgument, std::move(text)};
  }
  // The limits are those of other loads.
  static base::Status check_device_load(std::uint64_t index, double device_load_s);
  // Chooses whose loads count, and sets the speeds of the PEs. A PE takes about as long as its busier resource. So if devices have worked longer for all objects together than the PEs,
  // the loads of the objects are those of the devices, one for each object; and there are neither background loads nor speeds, because nothing
  // measures them on devices. REQUIRES: loads within the limits of a snapshot.
  void choose_loads(balance::Snapshot& snapshot, std::span<const double> device_loads_s);

 private:
  std::vector<Pace> paces_;  // of each PE
  balance::Summary summary_;
  Clock::time_point began_ = Clock::now();
  double decision_s_ = 0;
  bool is_by_device_time_ = false;
  std::vector<std::uint64_t> most_moves_;  // of each PE whose plan is under way
  std::vector<bool> has_plan_;
  std::uint64_t num_plans_ = 0;
  std::uint64_t moves_ = 0;
  std::uint64_t bytes_moved_ = 0;
};

}  // namespace weft::chare
