#include "models/chare/balancing/options.h"

#include <charconv>
#include <string_view>
#include <system_error>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::chare {

namespace {

constexpr double kLeastPeriodS = 0.001;  // a round takes about 0.1 ms
constexpr double kMostPeriodS = 1e6;

}  // namespace

std::vector<runtime::ModelOption> BalancingOptions::variables() {
  known_strategies_ = balance::strategy_names() +
                      ", or a strategy that the program registers on every PE before the job starts "
                      "(@weft.load_balancing.strategy, weft::balance::register_strategy)";
  return {{"WEFT_LB", known_strategies_,
           [this](std::string_view value) {
             if (!balance::is_strategy(value)) return false;
             strategy = value;
             return true;
           }},
          {"WEFT_LB_PERIOD", "seconds from 0.001 to 1e6",
           [this](std::string_view value) {
             if (value.empty()) return true;
             const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), period_s);
             const bool is_period = error == std::errc() && end == value.data() + value.size() &&
                                    period_s >= kLeastPeriodS && period_s <= kMostPeriodS;
             if (!is_period) period_s = 0;
             return is_period;
           }},
          {"WEFT_LB_VERBOSE", "1 or 0",
           [this](std::string_view value) {
             is_verbose = value == "1";
             return value == "1" || value == "0" || value.empty();
           }},
          {"WEFT_LB_CLOCK", "running or wall",
           [this](std::string_view value) {
             counts_waits = value == "wall";
             return value == "wall" || value == "running" || value.empty();
           }},
          {"WEFT_LB_RECORD", "the path of a file", [this](std::string_view value) {
             record_path = value;
             return true;
           }}};
}

std::unique_ptr<balance::Strategy> BalancingOptions::make_strategy() const {
  auto made = balance::make_strategy(strategy);
  if (!made.ok()) base::throw_status(made.status());
  return std::move(made).value();
}

std::string record_file_name(const std::string& path, int pe, std::uint64_t step) {
  return pe == 0 ? base::format("{}.{}", path, step) : base::format("{}.pe{}.{}", path, pe, step);
}

std::string StepReport::text() const {
  return base::format(
      "weft: load balancing of {}, step {}: {}{}, imbalance {:.1f}% before, {:.1f}% after, {} moves, {} "
      "bytes, decision {:.3f} ms, step {:.3f} ms\n",
      collection, step, strategy, is_by_device_time ? " by device time" : "", 100 * planned.imbalance_before,
      100 * planned.imbalance_after, moves, bytes_moved, 1e3 * decision_s, 1e3 * whole_s);
}

}  // namespace weft::chare
