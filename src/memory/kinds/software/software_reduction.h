// A reduction as a device does it, by the CPU, for kinds whose devices are software.
#pragma once

#include "memory/kinds/device_step.h"

namespace weft::memory {

// REQUIRES: sources and `out` are addresses of host memory, views of the device's.
void reduce_on_cpu(const DeviceReduction& reduction);

}  // namespace weft::memory
