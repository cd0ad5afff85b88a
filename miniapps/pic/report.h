// The output of pic.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "block.h"
#include "options.h"

namespace pic {

// Of one run.
struct Result {
  double overall_s = 0;
  double compute_s = 0;
  double balancing_s = 0;
  std::size_t num_syncs = 0;
  std::uint64_t checksum = 0;
  std::optional<Verdict> verdict;
};

// The time from the last block that reaches a sync point until the last PE goes on, summed over all sync points.
double balancing_s(const std::vector<Account>& blocks);

// One line before it starts.
std::string describe(const Options& options, int num_pes);
// The last lines.
std::string report(const Options& options, const Result& result, int num_pes);

}  // namespace pic
