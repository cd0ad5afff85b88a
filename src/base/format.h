// Text from a format string and values, in the notation of fmt: format("PE {} has {} bytes", pe, size_bytes).
//
// The layers use this and not fmt::format. fmt is header-only here, so that the installed libraries need no other
// library; each file that called it compiled fmt's number formatting again, which took 7 of its 10 seconds. format.cpp
// compiles it once. The compiler still checks the format string against the values.
//
// Threads: any.
#pragma once

#include <fmt/format.h>

#include <string>

namespace weft::base {

// Cold: text is for people. The compiler therefore treats each branch that formats text as unlikely.
[[nodiscard, gnu::cold]] std::string format_values(fmt::string_view text, fmt::format_args values);

template <class... Values>
[[nodiscard]] std::string format(fmt::format_string<Values...> text, Values&&... values) {
  return format_values(text, fmt::make_format_args(values...));
}

}  // namespace weft::base
