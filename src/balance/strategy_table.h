// The strategies of Weft, and the making of strategies by name. To add one to Weft: src/balance/README.md. Programs add theirs
// by register_strategy() (weft/balance/register_strategy.h).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/balance/register_strategy.h"
#include "weft/base/status.h"

#include "balance/strategy.h"

namespace weft::balance {

struct StrategyEntry {
  std::string_view name;
  // One line for people.
  std::string_view summary;
  std::unique_ptr<Strategy> (*make)(const StrategyOptions& options);
  Communication communication = Communication::kIgnored;
  // Whether Strategy::distributed() of its strategies is not null.
  bool is_distributed = false;
};

inline constexpr std::string_view kDefaultStrategy = "greedy_refine";

// The strategies of Weft, in the order in which people compare them.
std::span<const StrategyEntry> strategy_table();
// "none, greedy, ...", then those that the program has registered, for messages.
std::string strategy_names();

bool is_strategy(std::string_view name);
// Whether jobs have to count messages for it. False for an unknown name.
bool reads_communication(std::string_view name);
// Whether the PEs of a job decide together. False for strategies of the program, and for an unknown name.
bool is_distributed(std::string_view name);

// kInvalidArgument for an unknown name, which lists the known ones, and for a tolerance that is not 0 to 1.
base::Result<std::unique_ptr<Strategy>> make_strategy(std::string_view name,
                                                      const StrategyOptions& options = {});

// --- Strategies of the program. They belong to the process, as its chare types do: a program registers them before a job
// exists. One thread at a time.

using StrategyMaker = std::function<std::unique_ptr<Strategy>(const StrategyOptions& options)>;

// Throws Error(kInvalidArgument), see register_strategy(). The strategies that `make` makes have this name.
void register_strategy_maker(std::string_view name, StrategyMaker make,
                             Communication communication = Communication::kIgnored);
// Null if no strategy of this name is registered. Valid until one is unregistered.
const StrategyMaker* registered_strategy(std::string_view name);
// In alphabetical order.
std::vector<std::string> registered_strategy_names();
// For tests.
void unregister_strategy(std::string_view name);

}  // namespace weft::balance
