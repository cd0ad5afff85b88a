// Bytes that tests move and look at again: the same for the same seed, on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::test_support {

inline std::vector<std::byte> pattern(std::size_t size_bytes, std::uint64_t seed) {
  std::vector<std::byte> bytes(size_bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

}  // namespace weft::test_support
