// The settings of the throw-away kind.
#pragma once

namespace weft::memory {

struct ThrowAwayOptions {
  int num_devices = 3;
};

}  // namespace weft::memory
