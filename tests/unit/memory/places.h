// The places of the memory layer's tests.
#pragma once

#include "weft/memory/buffer.h"

namespace weft::memory {

inline constexpr Place kHostPlace{};
inline constexpr Place kDevice0{Kind::kEmulated, 0};
inline constexpr Place kDevice1{Kind::kEmulated, 1};
inline constexpr Place kGpu0{Kind::kCuda, 0};
inline constexpr Place kGpu1{Kind::kCuda, 1};

}  // namespace weft::memory
