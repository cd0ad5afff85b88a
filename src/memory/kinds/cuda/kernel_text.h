// The text of kernels is made of templates: see step_kernels.h.
#pragma once

#include <algorithm>
#include <cassert>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace weft::memory {

using TextValues = std::initializer_list<std::pair<std::string_view, std::string>>;

// Replaces each $name of the text by its value.
inline std::string filled(std::string_view text, TextValues values) {
  std::string result;
  for (;;) {
    const std::size_t dollar = text.find('$');
    result += text.substr(0, dollar);
    if (dollar == std::string_view::npos) return result;
    const std::size_t end =
        std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", dollar + 1), text.size());
    const std::string_view name = text.substr(dollar + 1, end - dollar - 1);
    const auto* const found = std::ranges::find(values, name, &TextValues::value_type::first);
    assert(found != values.end());
    result += found->second;
    text.remove_prefix(end);
  }
}

}  // namespace weft::memory
