// The output of jacobi3d: a table for people, records for programs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device.h"
#include "options.h"

namespace jacobi3d {

// Seconds per iteration; see --help.
struct Result {
  std::string model;
  double overall_s = 0;
  double compute_s = 0;
  double pack_s = 0;
  double communication_s = 0;
  std::optional<std::uint64_t> checksum;
  std::string verdict;  // of --verify; empty: not asked for
  bool correct = true;
};

// `pes` holds where the time of each PE went.
Result make_result(std::string model, double elapsed_s, const std::vector<Times>& pes, int iterations);

std::string describe(const Options& options, const Problem& problem, int num_pes);
std::string table(std::span<const Result> results);

// Writes one JSON object a line, with the fields that `weft bench` writes. Throws UserError naming
// the file.
void write_records(const Options& options, int num_pes, std::span<const Result> results);

}  // namespace jacobi3d
