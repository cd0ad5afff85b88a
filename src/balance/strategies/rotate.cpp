// Every object goes to the next PE. It balances nothing: it tests migration, because every step moves every object.
#include <memory>

#include "balance/strategy.h"

namespace weft::balance {
namespace {

class Rotate final : public Strategy {
 public:
  std::string_view name() const override { return "rotate"; }

  Placement place(const Snapshot& snapshot) override {
    Placement placement = present_placement(snapshot);
    for (std::size_t i = 0; i < placement.size(); ++i) {
      if (snapshot.objects[i].can_move) placement[i] = (placement[i] + 1) % snapshot.num_pes;
    }
    return placement;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_rotate(const StrategyOptions&) { return std::make_unique<Rotate>(); }

}  // namespace weft::balance
