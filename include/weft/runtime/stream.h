// Waiting for device work without keeping a PE from its other chares:
//
//   launch_kernel(..., stream);
//   co_await weft::stream_done(runtime(), weft::memory::Place{weft::memory::Kind::kCuda, 0}, stream);
#pragma once

#include "weft/memory/buffer.h"
#include "weft/runtime/operation.h"

namespace weft::runtime {

class Runtime;

// An operation that ends when all work queued on `stream` of `place` by now is done; its number of bytes is
// 0. Never blocks. Fails with kUnsupported or kOutOfRange when this PE has no such place, and with what the
// device reports. REQUIRES: the stream stays until then.
Operation stream_done(Runtime& runtime, memory::Place place, memory::StreamHandle stream);

}  // namespace weft::runtime
