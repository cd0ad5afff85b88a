#include "models/chare/sync/distributed_step.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace weft::chare {

using base::Status;

namespace {

Status wrong_step(std::string text) { return {base::StatusCode::kInvalidArgument, std::move(text)}; }

// The limit for a sum of loads that are within their own limits.
constexpr double kMostSumS = 1e30;

bool is_sum(double sum_s) { return sum_s >= 0 && sum_s <= kMostSumS; }

// Rounding may make the time of a PE a little less than 0.
bool is_pe_time(double time_s) { return std::abs(time_s) <= kMostSumS; }

}  // namespace

Status DistributedStep::add(int pe, const WaitingElements& waiting) {
  if (waiting.num_elements == 0 || waiting.num_elements > num_elements_ - num_waiting_) {
    return wrong_step(base::format("{} elements more wait, and {} of {} waited before", waiting.num_elements,
                                   num_waiting_, num_elements_));
  }
  if (waiting.has_set_loads > 1) {
    return wrong_step(base::format("elements wait with a flag of {}", waiting.has_set_loads));
  }
  if (!is_sum(waiting.load_s) || !is_sum(waiting.device_load_s)) {
    return wrong_step(base::format("{} elements wait with loads of {} s and device loads of {} s",
                                   waiting.num_elements, waiting.load_s, waiting.device_load_s));
  }
  if (!waiting.pace.is_valid()) {
    return wrong_step(
        base::format("elements have worked off {} in {} s", waiting.pace.load, waiting.pace.time_s));
  }
  num_waiting_ += waiting.num_elements;
  has_set_loads_ = has_set_loads_ || waiting.has_set_loads == 1;
  load_s_ += waiting.load_s;
  device_load_s_ += waiting.device_load_s;
  paces_[static_cast<std::size_t>(pe)].add(waiting.pace);
  began_ = Clock::now();
  return {};
}

Status DistributedStep::ready(int pe) {
  const auto which = static_cast<std::size_t>(pe);
  if (!is_complete() || is_ready_[which]) {
    return wrong_step(base::format("it is ready, and {} of {} elements wait", num_waiting_, num_elements_));
  }
  is_ready_[which] = true;
  ++num_ready_;
  return {};
}

Status DistributedStep::over(int pe, const PeOutcome& outcome) {
  const auto which = static_cast<std::size_t>(pe);
  if (!are_all_ready() || is_over_[which]) {
    return wrong_step(base::format("its part is over, and {} of {} PEs were ready", num_ready_, num_pes_));
  }
  if (outcome.moves > num_elements_ - moves_ || !is_pe_time(outcome.time_before_s) ||
      !is_pe_time(outcome.time_after_s) || !is_pe_time(outcome.decision_s)) {
    return wrong_step(base::format("it has moved {} elements of {}, and takes {} s after {} s", outcome.moves,
                                   num_elements_, outcome.time_after_s, outcome.time_before_s));
  }
  is_over_[which] = true;
  ++num_over_;
  moves_ += outcome.moves;
  bytes_moved_ += outcome.bytes_moved;
  sum_before_s_ += outcome.time_before_s;
  sum_after_s_ += outcome.time_after_s;
  max_before_s_ = std::max(max_before_s_, outcome.time_before_s);
  max_after_s_ = std::max(max_after_s_, outcome.time_after_s);
  decision_s_ = std::max(decision_s_, outcome.decision_s);
  return {};
}

StepReport DistributedStep::report(std::string collection, std::uint64_t step,
                                   std::string_view strategy) const {
  const auto num_pes = static_cast<double>(num_pes_);
  balance::Summary summary;
  summary.average_before_s = sum_before_s_ / num_pes;
  summary.average_after_s = sum_after_s_ / num_pes;
  summary.max_before_s = max_before_s_;
  summary.max_after_s = max_after_s_;
  if (sum_before_s_ > 0) summary.imbalance_before = max_before_s_ / summary.average_before_s - 1;
  if (sum_after_s_ > 0) summary.imbalance_after = max_after_s_ / summary.average_after_s - 1;
  summary.moves = moves_;
  return {.collection = std::move(collection),
          .step = step,
          .strategy = std::string(strategy),
          .is_by_device_time = is_by_device_time(),
          .planned = summary,
          .moves = moves_,
          .bytes_moved = bytes_moved_,
          .decision_s = decision_s_,
          .whole_s = std::chrono::duration<double>(Clock::now() - began_).count()};
}

}  // namespace weft::chare
