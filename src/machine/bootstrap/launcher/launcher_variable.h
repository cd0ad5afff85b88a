// A number that `weft run` hands to a PE in the environment.
#pragma once

#include "weft/base/status.h"

namespace weft::machine::bootstrap {

constexpr int kMaxPes = 1 << 20;

// The error says which variable is absent or not a number from `low` to `high`.
base::Result<int> launcher_variable(const char* name, int low, int high);

}  // namespace weft::machine::bootstrap
