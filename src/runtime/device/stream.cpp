#include "weft/runtime/device/stream.h"

#include "weft/runtime/runtime.h"

#include "memory/memory.h"

namespace weft::runtime {

Operation stream_done(Runtime& runtime, memory::Place place, memory::StreamHandle stream) {
  OperationState* state = OperationState::create(runtime);
  state->started(runtime.memory().when_stream_done(place, stream, state->completion()), 0);
  return Operation(state);
}

}  // namespace weft::runtime
