// Background load: what a PE has worked, in a step of load balancing of one collection, for the elements of other collections that
// take part in load balancing. The decider counts it as load that does not move.
//
// It needs no message as a rule: a PE tells it with the loads of its elements. A PE without elements of the collection reports no
// loads. It tells the sum of the steps that have ended, unless that is 0 still, and the decider divides what has come since its
// last decision by their number: a PE that was busy for longer than a step hears of several ends at once. Without that, a PE that
// other collections keep busy would look idle after its last element has left.
//
// In a step that the PEs decide together each PE uses its own background load, and tells none: has_reported is true before the step
// ends.
//
// The work for a collection on a PE is a sum that only grows: LocalSync::work_ns and the times that its elements have not
// reported yet. An element that comes brings the time that other PEs have worked for it, which work_ns takes off again. All sums are
// unsigned and wrap around, because the times of elements that come are claims of peers.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

namespace {

constexpr std::uint64_t kMostEmptySteps = std::uint64_t{1} << 48;

}  // namespace

bool SyncPoints::is_measured(const Collection& collection) {
  return collection.created_ && collection.is_balanced();
}

std::uint64_t SyncPoints::work_ns(Collection& collection) const {
  std::uint64_t sum_ns = local(collection).work_ns;
  collection.elements_->directory.for_each(
      [&sum_ns](std::uint64_t, ChareBase& chare) { sum_ns += nanoseconds(*chare.load_); });
  return sum_ns;
}

std::uint64_t SyncPoints::work_for_others_ns(const Collection& collection) const {
  std::uint64_t sum_ns = ended_work_ns_;
  for (const auto& [id, other] : chares_.parts_->collections) {
    if (other.get() != &collection && is_measured(*other)) sum_ns += work_ns(*other);
  }
  return sum_ns;
}

void SyncPoints::collection_begins(Collection& collection) {
  if (!is_measured(collection)) return;
  leave_out_waits();
  local(collection).others_mark_ns = work_for_others_ns(collection);
}

void SyncPoints::collection_ends(Collection& collection) {
  if (is_measured(collection)) ended_work_ns_ += work_ns(collection);
}

double SyncPoints::background_s(Collection& collection) {
  LocalSync& here = local(collection);
  const std::uint64_t now_ns = work_for_others_ns(collection);
  const std::uint64_t grown_ns = now_ns - std::exchange(here.others_mark_ns, now_ns);
  // More is no time: a peer's claim has made a sum smaller.
  constexpr std::uint64_t kMostNs = std::numeric_limits<std::int64_t>::max();
  if (grown_ns <= kMostNs) here.background_s += static_cast<double>(grown_ns) * 1e-9;
  here.background_s = std::min(here.background_s, balance::kMaxLoadS);
  return here.background_s;
}

double SyncPoints::take_background_s(Collection& collection) {
  const double taken_s = background_s(collection);
  local(collection).background_s = 0;
  return taken_s;
}

void SyncPoints::steps_are_over(Collection& collection, std::uint64_t num_steps) {
  LocalSync& here = local(collection);
  if (here.has_reported) return;
  const double told_s = background_s(collection);  // and the next report is of the next step alone
  if (collection.num_local() != 0) return;
  if (told_s == 0 && here.known_background_s == 0 && here.num_empty_steps == 0) return;
  here.num_empty_steps += num_steps;
  here.empty_s = std::min(here.empty_s + told_s, balance::kMaxLoadS);
  post(collection);
}

void SyncPoints::send_empty_report(Collection& collection) {
  LocalSync& here = local(collection);
  const std::uint64_t num_steps = std::exchange(here.num_empty_steps, 0);
  const double sum_s = std::exchange(here.empty_s, 0);
  if (num_steps == 0 || collection.is_destroyed() || collection.num_local() != 0) return;
  here.known_background_s = sum_s;
  runtime().send(decider(collection), make(collection, here.step, SyncKind::kBackground, num_steps, sum_s));
}

base::Status SyncPoints::on_background(Collection& collection, int from_pe, Pup& p) {
  std::uint64_t num_steps = 0;
  double sum_s = 0;
  p | num_steps | sum_s;
  if (decider(collection) != runtime().pe()) return misfit("another PE decides");
  if (num_steps == 0 || num_steps > kMostEmptySteps || !(sum_s >= 0 && sum_s <= balance::kMaxLoadS)) {
    return misfit("a background load of {} s in {} steps", sum_s, num_steps);
  }
  LocalSync::EmptyReport& report = local(collection).empty_reports[from_pe];
  report.num_steps = std::min(report.num_steps + num_steps, kMostEmptySteps);
  report.sum_s = std::min(report.sum_s + sum_s, balance::kMaxLoadS);
  return {};
}

void SyncPoints::use_empty_reports(LocalSync& here) {
  for (const auto& [pe, report] : std::exchange(here.empty_reports, {})) {
    if (here.background_of_pe_s.empty()) {
      here.background_of_pe_s.assign(static_cast<std::size_t>(runtime().num_pes()), 0.0);
    }
    here.background_of_pe_s[static_cast<std::size_t>(pe)] =
        report.sum_s / static_cast<double>(report.num_steps);
  }
}

base::Status SyncPoints::know_background(Collection& collection, int pe, double background_s) {
  if (!(background_s >= 0 && background_s <= balance::kMaxLoadS)) {
    return misfit("a background load of {} s", background_s);
  }
  std::vector<double>& known = local(collection).background_of_pe_s;
  if (known.empty()) {
    if (background_s == 0) return {};
    known.assign(static_cast<std::size_t>(runtime().num_pes()), 0.0);
  }
  known[static_cast<std::size_t>(pe)] = background_s;
  return {};
}

}  // namespace weft::chare
