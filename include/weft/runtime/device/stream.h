// Awaits device work; meanwhile the PE runs its other chares:
//
//   launch_kernel(..., stream);
//   co_await weft::stream_done(runtime(), weft::memory::Place{weft::memory::Kind::kCuda, 0}, stream);
#pragma once

#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"

namespace weft::runtime {

class Runtime;

// Returns an operation that completes when all work queued on `stream` of `place` before this call is done. Its
// number of bytes is 0. The call never blocks. The operation fails with kUnsupported or kOutOfRange if this PE
// has no such place, and with the device's own error. REQUIRES: the stream exists until the operation is over.
//
// Threads: the PE's thread.
Operation stream_done(Runtime& runtime, memory::Place place, memory::StreamHandle stream);

}  // namespace weft::runtime
