// The words of a command line, taken one by one. Each mistake is a UserError that names the option.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "fmt/format.h"

#include "command_line/user_error.h"

namespace miniapps {

class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  bool done() const { return next_ == words_.size(); }
  std::string_view take() { return words_[next_++]; }
  bool next_is_value() const { return !done() && !words_[next_].starts_with("--"); }

  std::string_view take_value(std::string_view option) {
    if (!next_is_value()) throw UserError(fmt::format("{} needs a value", option));
    return take();
  }

  int take_number(std::string_view option, int least) { return take_whole(option, least); }
  std::int64_t take_large_number(std::string_view option, std::int64_t least) {
    return take_whole(option, least);
  }

  double take_real(std::string_view option) {
    const std::string_view text = take_value(option);
    double number = 0;
    if (!parse(text, number) || !std::isfinite(number))
      throw UserError(fmt::format("{} must be a number, not '{}'", option, text));
    return number;
  }

  std::string take_one_of(std::string_view option, std::initializer_list<std::string_view> names) {
    const std::string_view text = take_value(option);
    for (const std::string_view name : names) {
      if (name == text) return std::string(text);
    }
    throw UserError(fmt::format("{} must be one of {}, not '{}'", option, fmt::join(names, ", "), text));
  }

 private:
  template <class Number>
  static bool parse(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }

  template <class Number>
  Number take_whole(std::string_view option, Number least) {
    const std::string_view text = take_value(option);
    Number number = 0;
    if (!parse(text, number) || number < least)
      throw UserError(fmt::format("{} must be a whole number of at least {}, not '{}'", option, least, text));
    return number;
  }

  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

}  // namespace miniapps
