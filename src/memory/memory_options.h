// How the memory layer of a PE is set up.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

#include "memory/kinds/emulated/faults.h"

namespace weft::memory {

// How long an end waits in all for devices that are still at work.
inline constexpr auto kDevicePatience = std::chrono::seconds(10);

struct MemoryOptions {
  int emulated_devices = 2;
  EmulatedFaults emulated_faults;
  // What the CUDA driver is loaded from; empty: no cuda.
  std::string cuda_driver = "libcuda.so.1";
  // The CUDA devices that PEs are given, one after the other; empty: all that are visible.
  std::vector<int> cuda_devices;
  // Which PE of its host this is. PE n uses device n of each kind, modulo their number.
  int local_rank = 0;
  std::chrono::nanoseconds device_patience = kDevicePatience;

  // With WEFT_GPUS and WEFT_EMULATED_FAULTS where they are set. kInvalidArgument for values that are none.
  static base::Result<MemoryOptions> from_environment(int local_rank);
  // "auto": all devices, "none": no cuda, "0,2": these devices.
  base::Status set_gpus(std::string_view text);
};

}  // namespace weft::memory
