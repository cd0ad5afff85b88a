// The known strategies. To add one, write strategies/<name>.cpp with its maker, and add the maker's declaration and its row
// to the table in strategy_table.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/status.h"

#include "balance/strategy.h"

namespace weft::balance {

struct StrategyEntry {
  std::string_view name;
  // One line for people.
  std::string_view summary;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
};

inline constexpr std::string_view kDefaultStrategy = "greedy_refine";

// All strategies, in the order in which people compare them.
std::span<const StrategyEntry> strategy_table();
// "none, greedy, ...", for messages.
std::string strategy_names();

// kInvalidArgument for an unknown name, which lists the known ones, and for a tolerance that is not 0 to 1.
base::Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name,
                                                      const StrategyOptions& options = {});

}  // namespace weft::balance
