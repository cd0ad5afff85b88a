// The runtime's own message handlers and the active message that carries every message.
#pragma once

#include "weft/runtime/message.h"

#include "machine/machine.h"

namespace weft::runtime {

inline constexpr machine::AmId kMessageAm = 0;
// A message in the header and its only attachment as the payload; see attachments.h.
inline constexpr machine::AmId kBufferMessageAm = 1;

enum RuntimeHandler : HandlerId {
  // kFutureSetHandler = kFirstRuntimeHandler is public: future.h packs it
  kExitRequestHandler = kFirstRuntimeHandler + 1,
  kExitHandler,
  kDrainedHandler,
  kCloseHandler,
  kReductionPartialHandler,
  kReductionSilentHandler,
  kQuiescenceStartHandler,
  kQuiescenceProbeHandler,
  kQuiescenceResultHandler,
};

}  // namespace weft::runtime
