#include "balance/strategy_table.h"

#include <array>

#include "base/format.h"

namespace weft::balance {

// One line for each file of strategies/, and one row in the table.
std::unique_ptr<Strategy> make_diffusion(const StrategyOptions& options);
std::unique_ptr<Strategy> make_greedy(const StrategyOptions& options);
std::unique_ptr<Strategy> make_greedy_refine(const StrategyOptions& options);
std::unique_ptr<Strategy> make_none(const StrategyOptions& options);
std::unique_ptr<Strategy> make_random(const StrategyOptions& options);
std::unique_ptr<Strategy> make_refine(const StrategyOptions& options);
std::unique_ptr<Strategy> make_rotate(const StrategyOptions& options);

namespace {

constexpr std::array kTable = {
    StrategyEntry{"none", "moves nothing", &make_none},
    StrategyEntry{"greedy", "largest object first, each to the PE that finishes it first", &make_greedy},
    StrategyEntry{"refine", "moves objects away from overloaded PEs only", &make_refine},
    StrategyEntry{"greedy_refine", "greedy, but an object stays where it is if the result is as good",
                  &make_greedy_refine},
    StrategyEntry{"diffusion", "pairs of PEs even out their loads and keep objects that talk together",
                  &make_diffusion},
    StrategyEntry{"rotate", "each object to the next PE, for tests", &make_rotate},
    StrategyEntry{"random", "each object to a random PE, for tests", &make_random},
};

}  // namespace

std::span<const StrategyEntry> strategy_table() { return kTable; }

std::string strategy_names() {
  std::string names;
  for (const StrategyEntry& entry : kTable) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

base::Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name, const StrategyOptions& options) {
  if (!(options.tolerance >= 0 && options.tolerance <= 1)) {
    return base::Status(
        base::StatusCode::kInvalidArgument,
        base::format("the tolerance of a load-balancing strategy is {}; expected 0 to 1", options.tolerance));
  }
  for (const StrategyEntry& entry : kTable) {
    if (entry.name == name) return entry.make(options);
  }
  return base::Status(base::StatusCode::kInvalidArgument,
                      base::format("there is no load-balancing strategy '{}'; the known ones are {}", name,
                                   strategy_names()));
}

}  // namespace weft::balance
