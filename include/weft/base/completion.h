// One operation in flight. The caller embeds a Completion in its own object, so that starting an operation
// allocates nothing.
//
// A start function returns one of two things:
//   pending            The operation is in flight. Its completion is called exactly once, later, from
//                      progress(), cancel() or close() of the machine or the memory layer, and never
//                      inside the start function.
//   any other status   The operation is over, and its completion is never called.
//
// The caller owns the Completion and the operation's buffers. It keeps both in place until the operation is
// over. The call passes the final status and, for a receive, the number of bytes that arrived. Once
// `function` has been entered, Weft does not touch the Completion again: `function` may free it or start
// another operation with it.
#pragma once

#include <cstddef>

#include "weft/base/status.h"

namespace weft::base {

struct Completion {
  using Function = void (*)(Completion* self, Status status, std::size_t size_bytes);

  Completion() = default;
  explicit Completion(Function on_complete) : function(on_complete) {}

  Function function = nullptr;
  // The handle of the layer that runs the operation, while the operation is in flight.
  void* in_flight = nullptr;
};

}  // namespace weft::base
