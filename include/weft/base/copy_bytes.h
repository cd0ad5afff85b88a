// memcpy() of a size that the compiler does not know, and that is one word most of the time: without a call then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weft::base {

[[gnu::always_inline]] inline void copy_bytes(void* to, const void* from, std::size_t size_bytes) {
  if (size_bytes == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else {
    std::memcpy(to, from, size_bytes);
  }
}

}  // namespace weft::base
