// The 64-bit tags of the machine's matched messages, most significant bits first:
//
//   type 4 | value 60
//
// A type belongs to one user of the machine: the runtime, or a model, which gets its type when it is
// installed (weft/runtime/model.h). The owner of a type lays out the value.
#pragma once

#include <cstdint>

namespace weft::machine {

using Tag = std::uint64_t;

inline constexpr int kTagTypeBits = 4;
inline constexpr int kTagValueBits = 60;
static_assert(kTagTypeBits + kTagValueBits == 64);

inline constexpr Tag kFullTagMask = ~Tag{0};
inline constexpr Tag kTagValueMask = (Tag{1} << kTagValueBits) - 1;
inline constexpr std::uint8_t kMaxTagType = (1 << kTagTypeBits) - 1;

// Bits of `value` above the 60 are dropped: they cannot change the type. REQUIRES: type <= kMaxTagType.
constexpr Tag make_tag(std::uint8_t type, std::uint64_t value) {
  return Tag{type} << kTagValueBits | (value & kTagValueMask);
}

}  // namespace weft::machine
