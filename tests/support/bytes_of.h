// The bytes of a text.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace weft::testing {

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace weft::testing
