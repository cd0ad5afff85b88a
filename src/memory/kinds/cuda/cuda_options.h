// The settings of kind cuda: which driver to load, and which devices the PEs of a host use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::memory {

struct CudaOptions {
  // The file of the CUDA driver. Empty: kind cuda is off.
  std::string driver = "libcuda.so.1";
  // The PEs of a host get these devices in turn. Empty: all visible devices.
  std::vector<int> devices;

  // Reads a value of WEFT_GPUS. "auto": all devices. "none": kind cuda is off. "0,2": these devices. Any
  // other text is kInvalidArgument.
  base::Status set_gpus(std::string_view text);
};

}  // namespace weft::memory
