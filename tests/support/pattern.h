// Bytes that tests move and look at again: the same for the same seed, on every machine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace weft::test_support {

inline std::vector<std::byte> pattern(std::size_t size_bytes, std::uint64_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  // Pointers: unoptimised, each step of an iterator is a call.
  for (std::byte *byte = bytes.data(), *end = byte + size_bytes; byte != end; ++byte) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    *byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

// Makes `size_bytes` bytes at `first` repeat the first `period_bytes` ones. Tests are not optimised: most of the time of a
// large message went into a loop over its bytes.
inline void repeat_bytes(void* first, std::size_t period_bytes, std::size_t size_bytes) {
  auto* bytes = static_cast<std::byte*>(first);
  for (std::size_t done = period_bytes; done < size_bytes; done *= 2)
    std::memcpy(bytes + done, bytes, std::min(done, size_bytes - done));
}

}  // namespace weft::test_support
