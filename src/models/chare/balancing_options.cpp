#include "models/chare/balancing_options.h"

#include <string_view>

#include "base/format.h"

namespace weft::chare {

std::vector<runtime::ModelOption> BalancingOptions::variables() {
  static const std::string names = balance::strategy_names();
  return {{"WEFT_LB", names,
           [this](std::string_view value) {
             if (!balance::make_strategy(value).ok()) return false;
             strategy = value;
             return true;
           }},
          {"WEFT_LB_VERBOSE", "1 or 0",
           [this](std::string_view value) {
             is_verbose = value == "1";
             return value == "1" || value == "0" || value.empty();
           }},
          {"WEFT_LB_RECORD", "the path of a file", [this](std::string_view value) {
             record_path = value;
             return true;
           }}};
}

std::string record_file_name(const std::string& path, int pe, std::uint64_t step) {
  return pe == 0 ? base::format("{}.{}", path, step) : base::format("{}.pe{}.{}", path, pe, step);
}

std::string StepReport::text() const {
  return base::format(
      "weft: load balancing of {}, step {}: {}, imbalance {:.1f}% before, {:.1f}% after, {} moves, {} bytes, "
      "decision {:.3f} ms, step {:.3f} ms\n",
      collection, step, strategy, 100 * planned.imbalance_before, 100 * planned.imbalance_after, moves,
      bytes_moved, 1e3 * decision_s, 1e3 * whole_s);
}

}  // namespace weft::chare
