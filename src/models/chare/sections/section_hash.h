// The hash function for the identities of sections.
#pragma once

#include <cstdint>

namespace weft::chare::section_detail {

// The finalizer of SplitMix64.
inline std::uint64_t mixed(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace weft::chare::section_detail
