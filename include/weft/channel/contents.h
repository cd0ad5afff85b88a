// The contents of a channel message, for check mode (`weft run --check`): the type of its elements, as NumPy
// names it, and its extents.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace weft::channel {

struct Contents {
  // "float64", "int32", "bool"; empty for plain bytes, which fit everything.
  std::string_view type;
  std::size_t element_bytes = 1;
  // Empty: one dimension, as long as the message.
  std::span<const std::int64_t> extents;
};

// Characters, std::byte and classes are plain bytes.
template <class T>
constexpr std::string_view element_type_name() {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Plain, bool>) return "bool";
  if constexpr (std::is_same_v<Plain, std::complex<float>>) return "complex64";
  if constexpr (std::is_same_v<Plain, std::complex<double>>) return "complex128";
  if constexpr (std::is_same_v<Plain, float>) return "float32";
  if constexpr (std::is_same_v<Plain, double>) return "float64";
  constexpr bool is_character = std::is_same_v<Plain, char> || std::is_same_v<Plain, wchar_t> ||
                                std::is_same_v<Plain, char8_t> || std::is_same_v<Plain, char16_t> ||
                                std::is_same_v<Plain, char32_t>;
  if constexpr (std::is_integral_v<Plain> && !is_character) {
    constexpr bool is_signed = std::is_signed_v<Plain>;
    switch (sizeof(Plain)) {
      case 1:
        return is_signed ? "int8" : "uint8";
      case 2:
        return is_signed ? "int16" : "uint16";
      case 4:
        return is_signed ? "int32" : "uint32";
      case 8:
        return is_signed ? "int64" : "uint64";
      default:
        break;
    }
  }
  return {};
}

template <class T>
inline constexpr Contents kContentsOf{element_type_name<T>(), sizeof(T), {}};

}  // namespace weft::channel
