// The buffers of measuring programs whose messages may be in memory of any kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

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

// Buffers that messages use in turn.
class Buffers {
 public:
  Buffers() = default;
  // `count` of them, each of `size_bytes`.
  Buffers(weft::Runtime& runtime, weft::Kind kind, std::size_t size_bytes, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) arrays_.push_back(make_buffer(runtime, kind, size_bytes));
  }

  weft::DeviceArray<std::byte>& next() {
    if (++last_ >= arrays_.size()) last_ = 0;
    return arrays_[last_];
  }

 private:
  std::vector<weft::DeviceArray<std::byte>> arrays_;
  std::size_t last_ = 0;
};

}  // namespace weft::benchmarks
