// Where a result goes: any handler on any PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/base/pup.h"
#include "weft/runtime/message.h"

namespace weft::runtime {

// Where a result is delivered: `prefix` and then the packed result are the payload of a message to `handler`.
struct Target {
  HandlerId handler = 0;
  std::uint8_t flags = 0;  // of the envelope: kBroadcastFlag for every PE, kControlFlag for the runtime's own
  std::uint32_t pe = 0;
  std::vector<std::byte> prefix;

  void pup(Pup& p) { p | handler | flags | pe | prefix; }
};

}  // namespace weft::runtime
