// The destination of a result: any handler on any PE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/pup.h"
#include "weft/base/small_bytes.h"
#include "weft/runtime/message.h"

namespace weft::runtime {

// A result is delivered as a message to `handler`. Its payload is `prefix`, followed by the packed result.
struct Target {
  HandlerId handler = 0;
  std::uint8_t flags = 0;  // of the envelope: kBroadcastFlag for every PE, kControlFlag for the runtime's own
  std::uint32_t pe = 0;
  base::SmallBytes prefix;

  void pup(Pup& p) { p | handler | flags | pe | prefix; }
};

}  // namespace weft::runtime
