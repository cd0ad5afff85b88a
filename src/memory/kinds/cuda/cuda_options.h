// The settings of kind cuda.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/status.h"

namespace weft::memory {

struct CudaOptions {
  // The file of the CUDA driver; empty: no cuda.
  std::string driver = "libcuda.so.1";
  // The devices that the PEs of a host are given in turn; empty: all visible ones.
  std::vector<int> devices;

  // The value of WEFT_GPUS. "auto": all devices; "none": no cuda; "0,2": these devices. kInvalidArgument for
  // any other text.
  base::Status set_gpus(std::string_view text);
};

}  // namespace weft::memory
