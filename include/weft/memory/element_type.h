// The elements that devices combine, and bytes, which are moved and not combined.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::memory {

enum class ElementType : std::uint32_t { kInt32, kInt64, kFloat16, kBfloat16, kFloat32, kFloat64, kByte };

constexpr std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::kByte:
      return 1;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return 2;
    case ElementType::kInt32:
    case ElementType::kFloat32:
      return 4;
    default:
      return 8;
  }
}

}  // namespace weft::memory
