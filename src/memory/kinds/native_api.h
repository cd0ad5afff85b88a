// Which libraries outside Weft understand the addresses of a kind. UCX, DLPack and the CUDA array interface
// ask.
#pragma once

#include <cstdint>

#include "weft/memory/buffer.h"

namespace weft::memory {

enum class NativeApi : std::uint8_t { kNone, kHost, kCuda };

// The API that the kind's factory names. Also known if this process cannot use the kind.
NativeApi native_api_of(Kind kind);

}  // namespace weft::memory
