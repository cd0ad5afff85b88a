#include "report.h"

#include <algorithm>
#include <map>

#include "fmt/format.h"

namespace pic {
namespace {

const char* name_of(Distribution distribution) {
  switch (distribution) {
    case Distribution::kGeometric:
      return "geometric";
    case Distribution::kSinusoidal:
      return "sinusoidal";
    case Distribution::kLinear:
      return "linear";
    case Distribution::kPatch:
      return "patch";
    case Distribution::kUniform:
      return "uniform";
  }
  return "unknown";
}

const char* verified(const Result& result) {
  if (!result.verdict) return "null";
  return result.verdict->correct ? "true" : "false";
}

}  // namespace

double balancing_s(const std::vector<Account>& blocks) {
  double total_s = 0;
  for (std::size_t step = 0; step < blocks.at(0).syncs.size(); ++step) {
    double reached_s = 0;
    std::map<int, double> resumed_s;  // the first block of each PE
    for (const Account& block : blocks) {
      const Sync& sync = block.syncs.at(step);
      reached_s = std::max(reached_s, sync.begin_s);
      const auto [found, is_new] = resumed_s.emplace(sync.pe, sync.end_s);
      if (!is_new) found->second = std::min(found->second, sync.end_s);
    }
    double last_s = 0;
    for (const auto& [pe, end_s] : resumed_s) last_s = std::max(last_s, end_s);
    total_s += last_s - reached_s;
  }
  return total_s;
}

std::string describe(const Options& options, int num_pes) {
  const Problem& problem = options.problem;
  return fmt::format(
      "PIC in C++: {} particles, {}, on {} x {} cells in {} x {} blocks, {} PE{}, ODF {}; {} steps after {}",
      problem.particles, name_of(problem.distribution), problem.size, problem.size, problem.blocks_x,
      problem.blocks_y, num_pes, num_pes == 1 ? "" : "s", options.odf, options.steps, options.warmup);
}

std::string report(const Options& options, const Result& result, int num_pes) {
  std::string text =
      fmt::format("time {:.4f} s, compute {:.4f} s, {} sync points, balancing {:.4f} s, checksum {:016x}\n",
                  result.overall_s, result.compute_s, result.num_syncs, result.balancing_s, result.checksum);
  if (result.verdict) text += fmt::format("verify: {}\n", result.verdict->text);
  return text + fmt::format(R"({{"size_bytes": {}, "metric": "time_s", "value": {}, "compute_s": {}, )"
                            R"("balancing_s": {}, "syncs": {}, "pes": {}, "odf": {}, "steps": {}, )"
                            R"("checksum": "{:016x}", "verified": {}}})",
                            static_cast<std::size_t>(options.problem.particles) * kNumFields * sizeof(double),
                            result.overall_s, result.compute_s, result.balancing_s, result.num_syncs, num_pes,
                            options.odf, options.steps, result.checksum, verified(result));
}

}  // namespace pic
