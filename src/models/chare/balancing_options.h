// The job's options of load balancing, and what a step reports. `weft run` sets the environment variables; any launcher may.
//
//   WEFT_LB          the name of the strategy
//   WEFT_LB_VERBOSE  1: a line to stderr for each step, by the PE that decides
//   WEFT_LB_RECORD   the path of load files: PATH.1 for the first step that this PE decides, PATH.2, ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/status.h"
#include "weft/runtime/model.h"

#include "balance/snapshot.h"
#include "balance/strategy_table.h"
#include "balance/summary.h"

namespace weft::chare {

struct BalancingOptions {
  std::string strategy{balance::kDefaultStrategy};
  bool is_verbose = false;
  std::string record_path;  // empty: nothing is recorded

  // The variables, which set the members of this object when the job reads them.
  std::vector<runtime::ModelOption> variables();
};

// The file of a step. PE 0 decides for most collections; the files of other PEs have the PE's number too.
std::string record_file_name(const std::string& path, int pe, std::uint64_t step);

struct StepReport {
  std::string collection;
  std::uint64_t step = 0;  // of the collection, from 1
  std::string strategy;
  balance::Summary planned;
  // What was done: fewer moves than planned if elements could not move any more.
  std::uint64_t moves = 0;
  std::uint64_t bytes_moved = 0;
  double decision_s = 0;
  double whole_s = 0;  // from the last report of a PE until the elements may run on

  // A line of text, with its end.
  std::string text() const;
};

}  // namespace weft::chare
