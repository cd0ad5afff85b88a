// The shared part of the device times of all objects of a PE, see device_time.h.
#pragma once

#include <cstdint>
#include <memory>

#include "weft/runtime/metering/device_time.h"

namespace weft::runtime {

struct DeviceMeter {
  // For objects without load balancing, in jobs whose PEs have an observer. Made on first use.
  DeviceTime& of_others(Runtime& runtime) {
    if (others == nullptr) others = std::make_unique<DeviceTime>(runtime);
    return *others;
  }

  std::unique_ptr<DeviceTime> others;
  std::uint64_t num_observed = 0;  // spans that an observer has seen begin
  std::uint64_t num_spans = 0;     // that have ended
  bool has_failed = false;
};

}  // namespace weft::runtime
