// Few moves, away from overloaded PEs only. A PE is overloaded if its time exceeds the average by more than the tolerance.
// Each move takes an object from the most loaded PE to the least loaded one. The strategy ends when no PE is overloaded, or
// when no such move lowers the most loaded PE's time without raising the other PE to it.
//
// Invariants: the maximum never rises; an object moves at most once.
//
// The average assumes that load is spread in proportion to speed. With unequal speeds the least loaded PE may be too slow for
// an object that another PE could take, so refine may end earlier than it has to.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <ranges>
#include <set>
#include <utility>
#include <vector>

#include "balance/strategies/pe_queue.h"
#include "balance/strategy.h"
#include "balance/summary.h"

namespace weft::balance {
namespace {

// The time that all PEs would need if load could be cut at will; PEs whose fixed load is longer do not count.
double ideal_time_s(const Snapshot& snapshot, const std::vector<double>& fixed_s) {
  double load_s = 0;
  for (const ObjectLoad& object : snapshot.objects) load_s += object.can_move ? object.load_s : 0;
  std::vector<int> pes(fixed_s.size());
  std::iota(pes.begin(), pes.end(), 0);
  std::sort(pes.begin(), pes.end(), [&](int a, int b) {
    return fixed_s[static_cast<std::size_t>(a)] < fixed_s[static_cast<std::size_t>(b)];
  });
  // Fills the PEs like connected vessels, lowest first.
  double speed_sum = 0;
  double work_sum = load_s;
  double time_s = 0;
  for (const int pe : pes) {
    const double bottom_s = fixed_s[static_cast<std::size_t>(pe)];
    if (speed_sum > 0 && time_s <= bottom_s) break;
    speed_sum += snapshot.speed(pe);
    work_sum += bottom_s * snapshot.speed(pe);
    time_s = work_sum / speed_sum;
  }
  return time_s;
}

class Step {
 public:
  Step(const Snapshot& snapshot, double tolerance)
      : snapshot_(snapshot),
        placement_(present_placement(snapshot)),
        times_s_(pe_times_s(snapshot, placement_)),
        limit_s_(ideal_time_s(snapshot, fixed_times_s(snapshot)) * (1 + tolerance)),
        candidates_(times_s_.size()) {
    // Smallest load first, so that the usual choice, the largest one that fits, is near the end.
    const std::vector<MovableObject> movable = movable_by_load(snapshot);
    for (const MovableObject& object : std::views::reverse(movable)) {
      candidates_[static_cast<std::size_t>(snapshot.objects[object.object].pe)].push_back(object);
    }
    for (int pe = 0; pe < snapshot.num_pes; ++pe) order_.emplace(time_s(pe), pe);
  }

  Placement run() && {
    while (order_.rbegin()->first > limit_s_ && move_one()) {
    }
    return std::move(placement_);
  }

 private:
  using Candidates = std::vector<MovableObject>;

  double time_s(int pe) const { return times_s_[static_cast<std::size_t>(pe)]; }

  // The object that is best taken from the most loaded PE, or end() if none makes it better.
  Candidates::iterator choose(Candidates& candidates, int from, int to) const {
    const auto first_at_least = [&candidates](double load_s) {
      return std::lower_bound(
          candidates.begin(), candidates.end(), load_s,
          [](const MovableObject& movable, double load) { return movable.load_s < load; });
    };
    const auto first_above = [&candidates](double load_s) {
      return std::upper_bound(
          candidates.begin(), candidates.end(), load_s,
          [](double load, const MovableObject& movable) { return load < movable.load_s; });
    };
    const double room_s = (limit_s_ - time_s(to)) * snapshot_.speed(to);
    const double excess_s = (time_s(from) - limit_s_) * snapshot_.speed(from);
    // The smallest object that is enough.
    const auto enough = first_at_least(excess_s);
    if (enough != candidates.end() && enough->load_s <= room_s) return enough;
    // The largest object that fits.
    const auto above_room = first_above(room_s);
    if (above_room != candidates.begin() && std::prev(above_room)->load_s > 0) return std::prev(above_room);
    // None fits below the limit. The smallest one lowers the maximum if it can be lowered.
    const auto smallest = first_above(0);
    if (smallest == candidates.end()) return smallest;
    const bool lowers = time_s(to) + smallest->load_s / snapshot_.speed(to) < time_s(from);
    return lowers ? smallest : candidates.end();
  }

  bool move_one() {
    const int from = order_.rbegin()->second;
    const int to = order_.begin()->second;
    Candidates& candidates = candidates_[static_cast<std::size_t>(from)];
    const auto chosen = choose(candidates, from, to);
    if (chosen == candidates.end()) return false;
    placement_[chosen->object] = to;
    set_time(from, time_s(from) - chosen->load_s / snapshot_.speed(from));
    set_time(to, time_s(to) + chosen->load_s / snapshot_.speed(to));
    candidates.erase(chosen);
    return true;
  }

  void set_time(int pe, double value_s) {
    order_.erase({time_s(pe), pe});
    times_s_[static_cast<std::size_t>(pe)] = value_s;
    order_.emplace(value_s, pe);
  }

  const Snapshot& snapshot_;
  Placement placement_;
  std::vector<double> times_s_;
  const double limit_s_;
  // For each PE the objects that it may give away, by load.
  std::vector<Candidates> candidates_;
  // All PEs by time.
  std::set<std::pair<double, int>> order_;
};

class Refine final : public Strategy {
 public:
  explicit Refine(double tolerance) : tolerance_(tolerance) {}

  std::string_view name() const override { return "refine"; }
  Placement place(const Snapshot& snapshot) override { return Step(snapshot, tolerance_).run(); }

 private:
  double tolerance_;
};

}  // namespace

std::unique_ptr<Strategy> make_refine(const StrategyOptions& options) {
  return std::make_unique<Refine>(options.tolerance);
}

}  // namespace weft::balance
