// The buffers of measuring programs whose messages may lie in memory of any kind.
#pragma once

#include <cstddef>
#include <cstring>

#include "weft/weft.h"

namespace weft::benchmarks {

// `size_bytes` on the device of this PE.
inline weft::DeviceArray<std::byte> make_buffer(weft::Runtime& runtime, weft::Kind kind,
                                                std::size_t size_bytes) {
  weft::DeviceArray<std::byte> array(runtime, size_bytes, weft::device_of(runtime, kind));
  // Pages never written are all one page of zeros.
  if (kind == weft::Kind::kHost && size_bytes > 0) std::memset(array.data(), 1, size_bytes);
  return array;
}

}  // namespace weft::benchmarks
