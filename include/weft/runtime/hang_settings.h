// When a job says that its program hangs, see docs/hangs.md.
#pragma once

#include <chrono>

namespace weft::runtime {

struct HangSettings {
  // All PEs have been idle for so long.
  std::chrono::steady_clock::duration idle_time{};
  // The job ends then, with code 1.
  bool ends_job = false;
};

}  // namespace weft::runtime
