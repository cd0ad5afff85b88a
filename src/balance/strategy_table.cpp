#include "balance/strategy_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "weft/balance/register_strategy.h"
#include "weft/base/error.h"

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
                  &make_diffusion, Communication::kRead, true},
    StrategyEntry{"rotate", "each object to the next PE, for tests", &make_rotate},
    StrategyEntry{"random", "each object to a random PE, for tests", &make_random},
};

bool has_row(std::string_view name) {
  return std::any_of(kTable.begin(), kTable.end(),
                     [name](const StrategyEntry& entry) { return entry.name == name; });
}

constexpr std::size_t kMostNameBytes = 64;

struct Registered {
  StrategyMaker make;
  Communication communication;
};

std::map<std::string, Registered, std::less<>>& registered() {
  static std::map<std::string, Registered, std::less<>> strategies;
  return strategies;
}

base::Status not_registered(std::string_view name, std::string_view why) {
  return {base::StatusCode::kInvalidArgument,
          base::format("the load-balancing strategy '{}' cannot be registered: {}", name.substr(0, 80), why)};
}

// Names of this form are never mistaken for FILE.py:FUNCTION of `weft lb`.
bool is_name(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_word = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
  };
  return !name.empty() && name.size() <= kMostNameBytes && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(), is_word);
}

class FunctionStrategy final : public Strategy {
 public:
  FunctionStrategy(std::string name, StrategyFunction function)
      : name_(std::move(name)), function_(std::move(function)) {}
  std::string_view name() const override { return name_; }
  Placement place(const Snapshot& snapshot) override { return function_(snapshot); }

 private:
  std::string name_;
  StrategyFunction function_;
};

}  // namespace

std::span<const StrategyEntry> strategy_table() { return kTable; }

std::string strategy_names() {
  std::string names;
  for (const StrategyEntry& entry : kTable) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  for (const std::string& name : registered_strategy_names()) names += ", " + name;
  return names;
}

bool is_strategy(std::string_view name) { return has_row(name) || registered_strategy(name) != nullptr; }

bool reads_communication(std::string_view name) {
  for (const StrategyEntry& entry : kTable) {
    if (entry.name == name) return entry.communication == Communication::kRead;
  }
  const auto found = registered().find(name);
  return found != registered().end() && found->second.communication == Communication::kRead;
}

bool is_distributed(std::string_view name) {
  return std::any_of(kTable.begin(), kTable.end(), [name](const StrategyEntry& entry) {
    return entry.name == name && entry.is_distributed;
  });
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
  if (const StrategyMaker* const make = registered_strategy(name)) return (*make)(options);
  return base::Status(base::StatusCode::kInvalidArgument,
                      base::format("there is no load-balancing strategy '{}'; the known ones are {}", name,
                                   strategy_names()));
}

namespace {

base::Status register_maker(std::string_view name, StrategyMaker make, Communication communication) {
  if (!is_name(name)) {
    return not_registered(
        name, "give a name of 1 to 64 letters, digits and underscores that does not begin with a digit");
  }
  if (has_row(name)) return not_registered(name, "Weft has a strategy of this name; give another one");
  if (!registered().try_emplace(std::string(name), Registered{std::move(make), communication}).second) {
    return not_registered(name, "the program has registered a strategy of this name; give another one");
  }
  return {};
}

}  // namespace

void register_strategy_maker(std::string_view name, StrategyMaker make, Communication communication) {
  base::check(register_maker(name, std::move(make), communication));
}

void register_strategy(std::string_view name, StrategyFunction function, Communication communication) {
  if (!function) base::check(not_registered(name, "the function is empty"));
  register_strategy_maker(
      name,
      [name = std::string(name), function = std::move(function)](const StrategyOptions&)
          -> std::unique_ptr<Strategy> { return std::make_unique<FunctionStrategy>(name, function); },
      communication);
}

const StrategyMaker* registered_strategy(std::string_view name) {
  const auto found = registered().find(name);
  return found == registered().end() ? nullptr : &found->second.make;
}

std::vector<std::string> registered_strategy_names() {
  std::vector<std::string> names;
  for (const auto& [name, strategy] : registered()) names.push_back(name);
  return names;
}

void unregister_strategy(std::string_view name) {
  const auto found = registered().find(name);
  if (found != registered().end()) registered().erase(found);
}

}  // namespace weft::balance
