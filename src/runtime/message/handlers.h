// The runtime's own message handlers.
#pragma once

#include "weft/runtime/message.h"

namespace weft::runtime {

enum RuntimeHandler : HandlerId {
  // kFutureSetHandler = 0 is public: future.h packs it
  kExitRequestHandler = 1,
  kExitHandler,
  kDrainedHandler,
  kCloseHandler,
  kReductionPartialHandler,
  kReductionEmptyHandler,
  kQuiescenceStartHandler,
  kQuiescenceProbeHandler,
  kQuiescenceResultHandler,
  kReductionExchangeHandler,
  kFlowCreditHandler,
  kFlowProbeHandler,
  kFutureWantHandler,
  kFutureReleaseHandler,
  kFutureCopyHandler,
  kReductionRepeatHandler,
  kReductionCutHandler,
  kReductionDecisionHandler,
  kHangProbeHandler,
  kHangAnswerHandler,
  kWaitsAskHandler,
  kWaitsTellHandler,
};

}  // namespace weft::runtime
