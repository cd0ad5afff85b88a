// Greedy's balance with few moves. Greedy runs first, for its maximum only. A second pass takes the objects in the same order.
// An object stays where it is if its PE then remains within the limit, which is greedy's maximum and the tolerance. Otherwise
// it goes to the PE that finishes it first. After Charm++'s GreedyRefineLB.
//
// The result's maximum is never above the limit. A pass that exceeds it, because objects that stayed had filled the PEs, is
// repeated with less room for staying, and in the end greedy's own placement is the result.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "balance/strategies/pe_queue.h"
#include "balance/strategy.h"
#include "balance/summary.h"

namespace weft::balance {
namespace {

// One pass: objects stay while their PE remains within `stay_limit_s`. Writes the placement of all movable objects, and
// returns the time of the most loaded PE. Below 0 nothing stays: that is greedy.
double pass(const Snapshot& snapshot, std::span<const MovableObject> movable_objects,
            const std::vector<double>& fixed_s, double stay_limit_s, Placement& placement) {
  PeQueue pes(snapshot, fixed_s);
  for (const MovableObject& movable : movable_objects) {
    int pe = snapshot.objects[movable.object].pe;
    if (!(pes.finish_s(pe, movable.load_s) <= stay_limit_s)) pe = pes.earliest(movable.load_s);
    pes.add(pe, movable.load_s);
    placement[movable.object] = pe;
  }
  return maximum(pes.times_s());
}

class GreedyRefine final : public Strategy {
 public:
  explicit GreedyRefine(double tolerance) : tolerance_(tolerance) {}

  std::string_view name() const override { return "greedy_refine"; }

  Placement place(const Snapshot& snapshot) override {
    constexpr double kNothingStays = -1;
    const std::vector<MovableObject> movable = movable_by_load(snapshot);
    const std::vector<double> fixed_s = fixed_times_s(snapshot);
    Placement greedy = present_placement(snapshot);
    const double greedy_max_s = pass(snapshot, movable, fixed_s, kNothingStays, greedy);
    const double limit_s = greedy_max_s * (1 + tolerance_);
    Placement placement = greedy;
    for (const double part : kStayLimits) {
      const double max_s = pass(snapshot, movable, fixed_s, limit_s * part, placement);
      if (max_s <= limit_s) return placement;
    }
    return greedy;
  }

 private:
  static constexpr std::array kStayLimits = {1.0, 0.95, 0.8, 0.5};

  double tolerance_;
};

}  // namespace

std::unique_ptr<Strategy> make_greedy_refine(const StrategyOptions& options) {
  return std::make_unique<GreedyRefine>(options.tolerance);
}

}  // namespace weft::balance
