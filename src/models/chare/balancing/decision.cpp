#include "models/chare/balancing/decision.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace weft::chare {

using base::Status;

namespace {

double seconds_since(Decision::Clock::time_point then) {
  return std::chrono::duration<double>(Decision::Clock::now() - then).count();
}

}  // namespace

Status Decision::check_device_load(std::uint64_t index, double device_load_s) {
  if (device_load_s >= 0 && device_load_s <= balance::kMaxLoadS) return {};
  return invalid(base::format("it reports element {} with a device load of {} s; expected 0 to {} s", index,
                              device_load_s, balance::kMaxLoadS));
}

Status Decision::add_pace(int pe, const Pace& pace) {
  if (!pace.is_valid()) return invalid(base::format("it has worked off {} in {} s", pace.load, pace.time_s));
  paces_[static_cast<std::size_t>(pe)].add(pace);
  return {};
}

void Decision::choose_loads(balance::Snapshot& snapshot, std::span<const double> device_loads_s) {
  double host_s = 0;
  double device_s = 0;
  for (const balance::ObjectLoad& object : snapshot.objects) host_s += object.load_s;
  for (const double load_s : device_loads_s) device_s += load_s;
  is_by_device_time_ = device_s > host_s;
  if (!is_by_device_time_) {
    snapshot.pe_speed = speeds_of(paces_);
    return;
  }
  for (std::size_t i = 0; i < device_loads_s.size(); ++i) snapshot.objects[i].load_s = device_loads_s[i];
  std::ranges::fill(snapshot.background_load_s, 0.0);
}

base::Result<std::vector<PlanOfPe>> Decision::decide(const balance::Snapshot& snapshot,
                                                     balance::Strategy& strategy) {
  began_ = Clock::now();
  if (Status status = balance::check(snapshot); !status.ok()) return status;
  const balance::Placement placement = strategy.place(snapshot);
  if (Status status = balance::check(snapshot, placement); !status.ok()) return status;
  decision_s_ = seconds_since(began_);
  summary_ = balance::summarize(snapshot, placement);
  std::vector<PlanOfPe> plans(most_moves_.size());
  for (std::size_t i = 0; i < placement.size(); ++i) {
    const balance::ObjectLoad& object = snapshot.objects[i];
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

Status Decision::done(int pe, std::uint64_t moves, std::uint64_t bytes_moved) {
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

Status Decision::done(int pe, Pup& message) {
  std::uint64_t moves = 0;
  std::uint64_t bytes_moved = 0;
  message | moves | bytes_moved;
  return done(pe, moves, bytes_moved);
}

StepReport Decision::report(std::string collection, std::uint64_t step, std::string_view strategy) const {
  return {.collection = std::move(collection),
          .step = step,
          .strategy = std::string(strategy),
          .is_by_device_time = is_by_device_time_,
          .planned = summary_,
          .moves = moves_,
          .bytes_moved = bytes_moved_,
          .decision_s = decision_s_,
          .whole_s = seconds_since(began_)};
}

}  // namespace weft::chare
