// Text from a format string and values, in the notation of fmt: format("PE {} has {} bytes", pe, size_bytes).
//
// The layers use this and not fmt::format. format.cpp alone has the whole of fmt, so that the installed libraries need no
// other library and no other file compiles fmt's formatting of numbers, which took 7 of 10 seconds. The others read what
// checks the format string against the values.
//
// Threads: any.
#pragma once

#if __has_include(<fmt/base.h>)  // since version 11, where core.h is all of fmt
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif

#include <string>

namespace weft::base {

// Cold: text is for people. The compiler therefore treats each branch that formats text as unlikely.
[[nodiscard, gnu::cold]] std::string format_values(fmt::string_view text, fmt::format_args values);

template <class... Values>
[[nodiscard]] std::string format(fmt::format_string<Values...> text, Values&&... values) {
  return format_values(text, fmt::make_format_args(values...));
}

}  // namespace weft::base
