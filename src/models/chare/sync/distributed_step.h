// One step of load balancing that all PEs decide together, as the PE sees it that has made the collection: it counts the elements
// that wait, and the PEs that are ready, and that have moved their elements. It knows no loads of elements.
//
// It sends nothing. The numbers are claims of peers: each one is checked before use. Threads: the PE's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/base/status.h"

#include "models/chare/balancing/options.h"
#include "models/chare/balancing/pace.h"

namespace weft::chare {

// Elements of one PE that have begun to wait. Travels as its bytes.
struct WaitingElements {
  std::uint64_t num_elements = 0;
  std::uint64_t has_set_loads = 0;  // 0 or 1
  double load_s = 0;                // the sums of their loads
  double device_load_s = 0;
  Pace pace = {};
};
static_assert(std::is_trivially_copyable_v<WaitingElements> && sizeof(WaitingElements) == 56);

// The moves and times of one PE in the step. Travels as its bytes.
struct PeOutcome {
  std::uint64_t moves = 0;
  std::uint64_t bytes_moved = 0;
  double time_before_s = 0;  // of the PE, from the loads
  double time_after_s = 0;
  double decision_s = 0;  // from the beginning of the step on this PE to the end of its last round
};
static_assert(std::is_trivially_copyable_v<PeOutcome> && sizeof(PeOutcome) == 40);

class DistributedStep {
 public:
  using Clock = std::chrono::steady_clock;

  DistributedStep(std::uint64_t num_elements, int num_pes)
      : num_elements_(num_elements),
        num_pes_(static_cast<std::size_t>(num_pes)),
        paces_(num_pes_),
        is_ready_(num_pes_),
        is_over_(num_pes_) {}

  // Of that PE. kInvalidArgument, which says what is wrong, as those below.
  base::Status add(int pe, const WaitingElements& waiting);
  // Whether all elements wait.
  bool is_complete() const { return num_waiting_ == num_elements_; }
  // REQUIRES: is_complete(). As Decision::choose_loads() and SyncStep::ignore_background() say.
  bool is_by_device_time() const { return device_load_s_ > load_s_; }
  bool ignores_background() const { return has_set_loads_ || is_by_device_time(); }

  // Of all PEs together; nothing if it does not count.
  Pace pace() const { return is_by_device_time() ? Pace() : total(paces_); }

  // That PE knows the objects that its elements talk to.
  base::Status ready(int pe);
  bool are_all_ready() const { return num_ready_ == num_pes_; }
  base::Status over(int pe, const PeOutcome& outcome);
  bool is_over() const { return num_over_ == num_pes_; }

  // The report of the step with that number, from 1. REQUIRES: is_over().
  StepReport report(std::string collection, std::uint64_t step, std::string_view strategy) const;

 private:
  std::uint64_t num_elements_;
  std::size_t num_pes_;
  std::uint64_t num_waiting_ = 0;
  bool has_set_loads_ = false;
  double load_s_ = 0;
  double device_load_s_ = 0;
  std::vector<Pace> paces_;  // by PE
  Clock::time_point began_;  // when the last element was counted
  std::vector<bool> is_ready_;
  std::size_t num_ready_ = 0;
  std::vector<bool> is_over_;
  std::size_t num_over_ = 0;
  std::uint64_t moves_ = 0;
  std::uint64_t bytes_moved_ = 0;
  double sum_before_s_ = 0;
  double sum_after_s_ = 0;
  double max_before_s_ = 0;
  double max_after_s_ = 0;
  double decision_s_ = 0;
};

}  // namespace weft::chare
