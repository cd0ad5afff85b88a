// Every object stays where it is: the measurements go on, nothing moves.
#include <memory>

#include "balance/strategy.h"

namespace weft::balance {
namespace {

class None final : public Strategy {
 public:
  std::string_view name() const override { return "none"; }
  Placement place(const Snapshot& snapshot) override { return present_placement(snapshot); }
};

}  // namespace

std::unique_ptr<Strategy> make_none(const StrategyOptions&) { return std::make_unique<None>(); }

}  // namespace weft::balance
