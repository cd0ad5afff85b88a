#include "models/chare/sync_step.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace weft::chare {

using base::Status;
using base::StatusCode;

namespace {

Status invalid(std::string text) { return {StatusCode::kInvalidArgument, std::move(text)}; }

double seconds_since(SyncStep::Clock::time_point then) {
  return std::chrono::duration<double>(SyncStep::Clock::now() - then).count();
}

}  // namespace

SyncStep::SyncStep(std::uint64_t collection, std::uint64_t size, int num_pes)
    : is_reported_(size),
      most_moves_(static_cast<std::size_t>(num_pes)),
      has_plan_(static_cast<std::size_t>(num_pes)) {
  snapshot_.num_pes = num_pes;
  snapshot_.background_load_s.assign(static_cast<std::size_t>(num_pes), 0.0);
  snapshot_.objects.resize(size);
  for (balance::ObjectLoad& object : snapshot_.objects) object.collection = collection;
}

Status SyncStep::add(int pe, std::span<const ReportedLoad> loads) {
  for (const ReportedLoad& load : loads) {
    if (load.index >= is_reported_.size()) {
      return invalid(base::format("it reports element {} of {}", load.index, is_reported_.size()));
    }
    if (is_reported_[load.index]) {
      return invalid(base::format("it reports element {}, which has been reported before", load.index));
    }
    if (load.can_move > 1) {
      return invalid(base::format("it reports element {} with a flag of {}", load.index, load.can_move));
    }
    // In the order of indices: the decision does not depend on the order of the reports.
    balance::ObjectLoad& object = snapshot_.objects[load.index];
    object.index = load.index;
    object.pe = pe;
    object.load_s = load.load_s;
    object.can_move = load.can_move != 0;
    if (Status status = balance::check_object(snapshot_, object); !status.ok()) return status;
    is_reported_[load.index] = true;
    ++num_reported_;
  }
  return {};
}

base::Result<std::vector<PlanOfPe>> SyncStep::decide(balance::Strategy& strategy) {
  began_ = Clock::now();
  if (Status status = balance::check(snapshot_); !status.ok()) return status;
  const balance::Placement placement = strategy.place(snapshot_);
  if (Status status = balance::check(snapshot_, placement); !status.ok()) return status;
  decision_s_ = seconds_since(began_);
  summary_ = balance::summarize(snapshot_, placement);
  std::vector<PlanOfPe> plans(most_moves_.size());
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const balance::ObjectLoad& object = snapshot_.objects[i];
    if (placement[i] == object.pe) continue;
    const auto to_pe = static_cast<std::size_t>(placement[i]);
    plans[static_cast<std::size_t>(object.pe)].moves.push_back({object.index, to_pe});
    ++plans[to_pe].num_arrivals;
  }
  for (std::size_t pe = 0; pe < plans.size(); ++pe) {
    if (plans[pe].is_empty()) continue;
    has_plan_[pe] = true;
    most_moves_[pe] = plans[pe].moves.size();
    ++num_plans_;
  }
  return plans;
}

Status SyncStep::done(int pe, std::uint64_t moves, std::uint64_t bytes_moved) {
  const auto which = static_cast<std::size_t>(pe);
  if (!has_plan_[which]) return invalid("it has no moves to carry out");
  if (moves > most_moves_[which]) {
    return invalid(base::format("it has moved {} elements and was asked for {}", moves, most_moves_[which]));
  }
  has_plan_[which] = false;
  --num_plans_;
  moves_ += moves;
  bytes_moved_ += bytes_moved;
  return {};
}

double SyncStep::elapsed_s() const { return seconds_since(began_); }

}  // namespace weft::chare
