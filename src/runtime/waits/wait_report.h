// The text of a report about what the parties of a job wait for: the causes first, then all waits.
//
// A pure function of what the PEs have listed; no messages in it.
#pragma once

#include <string>
#include <vector>

#include "weft/runtime/wait_list.h"

namespace weft::runtime {

struct WaitsOfPe {
  int pe = 0;
  bool has_answered = false;
  WaitList list;
};

// Lines, each with its end, indented by two spaces. In this order:
//
//   - the causes: each cycle of parties; each party that is waited for and waits for nothing itself, among them the elements that a
//     reduction lacks; each wait for which no party is known;
//   - the waits, by PE. Those that differ in numbers alone are one line with their count;
//   - the PEs that have not answered.
//
// `hangs`: nothing will change. Otherwise only cycles are causes, because all else may end.
std::string wait_report(const std::vector<WaitsOfPe>& pes, bool hangs);

}  // namespace weft::runtime
