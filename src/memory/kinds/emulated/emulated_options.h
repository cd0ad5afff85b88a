// The settings of kind emulated: its devices, how slow they are, and the faults that tests inject.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "weft/base/status.h"

namespace weft::memory {

struct EmulatedFaults {
  // The poll at which a copy at the head of its stream is done; at least 1. It holds for queued copies too.
  int polls_per_copy = 2;
  // The n-th copy queued from now on fails when its turn comes (1: the next one); 0: none.
  std::uint64_t fail_copy = 0;
  // The n-th allocation from now on fails; 0: none.
  std::uint64_t fail_allocation = 0;
  // Memory that is allocated from now on cannot be exported, like that of a stream-ordered pool.
  bool refuse_exports = false;
  // Memory per device.
  std::size_t device_bytes = std::numeric_limits<std::size_t>::max();
};

struct EmulatedOptions {
  int num_devices = 2;
  EmulatedFaults faults;
};

// From "polls=10,fail_copy=3,fail_allocation=2,device_bytes=1048576,refuse_exports=1", each part optional.
base::Result<EmulatedFaults> parse_emulated_faults(std::string_view text);

}  // namespace weft::memory
