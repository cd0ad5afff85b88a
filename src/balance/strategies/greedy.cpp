// Largest object first, each to the PE that finishes it first ("longest processing time first"). Where the objects are now
// does not count, so nearly all of them move.
//
// With equal speeds, no fixed load and m PEs, the most loaded PE has at most 4/3 - 1/(3m) times the least possible load.
#include <memory>

#include "balance/strategies/pe_queue.h"
#include "balance/strategy.h"

namespace weft::balance {
namespace {

class Greedy final : public Strategy {
 public:
  std::string_view name() const override { return "greedy"; }

  Placement place(const Snapshot& snapshot) override {
    Placement placement = present_placement(snapshot);
    PeQueue pes(snapshot, fixed_times_s(snapshot));
    for (const MovableObject& movable : movable_by_load(snapshot)) {
      const int pe = pes.earliest(movable.load_s);
      pes.add(pe, movable.load_s);
      placement[movable.object] = pe;
    }
    return placement;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_greedy(const StrategyOptions&) { return std::make_unique<Greedy>(); }

}  // namespace weft::balance
