// The tags of channel messages:    type 4 | number of the receiving end 28 | counter 32
//
// Each end keeps a counter per direction, which wraps.
#pragma once

#include <cstdint>

#include "machine/tag.h"

namespace weft::channel {

inline constexpr int kEndNumberBits = 28;
inline constexpr int kCounterBits = 32;
inline constexpr std::uint32_t kMaxEndNumber = (std::uint32_t{1} << kEndNumberBits) - 1;
static_assert(kEndNumberBits + kCounterBits == machine::kTagValueBits);

// The tags of messages to an end, for any counter.
class EndTags {
 public:
  constexpr EndTags() = default;
  // REQUIRES: end_number <= kMaxEndNumber.
  constexpr EndTags(std::uint8_t tag_type, std::uint32_t end_number)
      : first_(machine::make_tag(tag_type, std::uint64_t{end_number} << kCounterBits)) {}
  constexpr machine::Tag operator[](std::uint32_t counter) const { return first_ | counter; }

 private:
  machine::Tag first_ = 0;
};

}  // namespace weft::channel
