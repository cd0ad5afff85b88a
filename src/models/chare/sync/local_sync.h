// LocalSync: a PE's state of the load-balancing steps of one collection. See sync.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "balance/strategy.h"
#include "models/chare/balancing/pace.h"
#include "models/chare/elements/feature.h"
#include "models/chare/sync/distributed_step.h"
#include "models/chare/sync/local_rounds.h"
#include "models/chare/sync/step.h"

namespace weft::chare {

struct LocalSync final : FeatureState {
  // The present step: all before it are over. A PE without elements may be behind the others.
  std::uint64_t step = 0;
  std::uint64_t num_waiting = 0;          // elements of this PE that wait in this step
  std::vector<std::uint64_t> unreported;  // those of them that the deciding PE does not know
  // Elements that wait in a later step: they have come from a PE that was ahead of this one.
  std::vector<std::uint64_t> early;
  bool is_posted = false;     // a report, or a message about steps without elements
  bool has_reported = false;  // in the present step
  // The report waits for device work up to number `device_mark`; 0: it has waited for none yet.
  bool waits_for_devices = false;
  std::uint64_t device_mark = 0;

  // --- Background load, see sync/background.cpp. Times in ns; the sums wrap around.
  std::uint64_t work_ns =
      0;  // for elements of this collection on this PE, up to their reports and departures
  std::uint64_t others_mark_ns = 0;  // the work for other collections when it was measured last
  double background_s = 0;           // since the step has begun here
  double known_background_s = 0;     // what the deciding PE knows of this PE
  // Steps that are over, in which this PE has had no elements, and the background load of all of them: still to be told.
  std::uint64_t num_empty_steps = 0;
  double empty_s = 0;

  // Of the elements that have been reported since it was told last.
  Pace pace;

  // --- The plan of this step
  bool has_plan = false;
  std::deque<PlannedMove> planned;  // moves that are still to be made
  std::uint64_t num_expected = 0;
  std::uint64_t num_arrived = 0;  // or stayed on their PE after all; may precede the plan
  std::uint64_t num_moved = 0;
  std::uint64_t bytes_moved = 0;
  std::map<std::uint64_t, int>
      leaving;  // elements that leave when their peers have answered, and their new PEs

  // On the PE that decides; on each PE if they decide together.
  std::unique_ptr<balance::Strategy> strategy;
  // The present step if the PEs decide together; null before this PE has anything to do with it.
  std::unique_ptr<LocalRounds> rounds;

  // --- On the PE that has made the collection
  std::uint64_t decided_step = 0;  // the step that it collects, or decides on
  std::unique_ptr<SyncStep> deciding;
  std::unique_ptr<DistributedStep> counting;  // if the PEs decide together
  // The background load of one step on each PE, as it was told last; empty: nothing yet.
  std::vector<double> background_of_pe_s;
  // The reports of PEs without elements since the last decision.
  struct EmptyReport {
    std::uint64_t num_steps = 0;
    double sum_s = 0;
  };
  std::map<int, EmptyReport> empty_reports;

  // Begins that step, without elements that wait.
  void begin(std::uint64_t new_step) {
    step = new_step;
    num_waiting = 0;
    unreported.clear();
    has_reported = false;
    background_s = 0;
    rounds.reset();
    has_plan = false;
    planned.clear();
    num_expected = num_arrived = num_moved = bytes_moved = 0;
  }
};

}  // namespace weft::chare
