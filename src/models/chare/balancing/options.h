// The job's options of load balancing, and what a step reports. `weft run` sets the environment variables; any launcher may.
//
//   WEFT_LB          the name of the strategy
//   WEFT_LB_PERIOD   seconds between two rounds for collections whose classes are balanced periodically; not set: no rounds
//   WEFT_LB_VERBOSE  1: a line to stderr for each step, by the PE that decides
//   WEFT_LB_CLOCK    running: measured loads do not contain the time in which the thread waits for a processor; wall: they do
//   WEFT_LB_RECORD   the path of load files: PATH.1 for the first step that this PE decides, PATH.2, ...
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/balance/snapshot.h"
#include "weft/base/status.h"
#include "weft/runtime/model.h"

#include "balance/strategy.h"
#include "balance/strategy_table.h"
#include "balance/summary.h"

namespace weft::chare {

struct BalancingOptions {
  std::string strategy{balance::kDefaultStrategy};
  double period_s = 0;  // 0: no periodic load balancing
  bool is_verbose = false;
  std::string record_path;    // empty: nothing is recorded
  bool counts_waits = false;  // for a processor, in measured loads
  // Whether steps need to know who talks to whom.
  bool reads_communication() const { return balance::reads_communication(strategy) || !record_path.empty(); }

  // Whether all PEs decide together about collections at sync points. If loads are recorded, one PE collects them and decides.
  bool decides_together() const { return balance::is_distributed(strategy) && record_path.empty(); }

  // The variables, which set the members of this object when the job reads them. Valid until the next call.
  std::vector<runtime::ModelOption> variables();
  // A new one. Throws Error if its maker, which may be a function of the program, fails.
  std::unique_ptr<balance::Strategy> make_strategy() const;

 private:
  std::string known_strategies_;  // for the message about an unknown one
};

// The file of a step. PE 0 decides for most collections; the files of other PEs have the PE's number too.
std::string record_file_name(const std::string& path, int pe, std::uint64_t step);

struct StepReport {
  std::string collection;
  std::uint64_t step = 0;  // of the collection, from 1
  std::string strategy;
  bool is_by_device_time = false;  // the loads were those of devices
  balance::Summary planned;
  // The moves that were carried out: fewer than planned if elements could not move any more.
  std::uint64_t moves = 0;
  std::uint64_t bytes_moved = 0;
  double decision_s = 0;
  double whole_s = 0;  // from the last report of a PE until the elements may run on

  // A line of text, with its end.
  std::string text() const;
};

}  // namespace weft::chare
