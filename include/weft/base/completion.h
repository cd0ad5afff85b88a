// One operation in flight, embedded in whatever waits for it, so that starting one allocates nothing.
//
// Life: whoever starts an operation owns the Completion and keeps it (and the buffers of the operation)
// in place until it completes. A start function returns
//   pending   `function` will be called exactly once, from the machine's or the memory layer's
//             progress(), from cancel(), or from close(); never from inside the start call;
//   anything else   the operation is over, `function` will not be called.
// The call gets the final status and, for receives, the number of bytes that arrived. After `function`
// has been entered the runtime does not touch the Completion again, so it may be freed or reused there.
#pragma once

#include <cstddef>

#include "weft/base/status.h"

namespace weft::base {

struct Completion {
  using Function = void (*)(Completion* self, Status status, std::size_t size_bytes);

  Completion() = default;
  explicit Completion(Function on_complete) : function(on_complete) {}

  Function function = nullptr;
  // The layer that runs the operation keeps its handle here while it is in flight.
  void* in_flight = nullptr;
};

}  // namespace weft::base
