// The shared part of the device times of all objects of a PE, see device_time.h.
#pragma once

#include <cstdint>

namespace weft::runtime {

struct DeviceMeter {
  std::uint64_t num_spans = 0;  // that have ended
  bool has_failed = false;
};

}  // namespace weft::runtime
