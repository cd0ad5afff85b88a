// The words of a command line, taken one by one. Each mistake is a UserError that names the option. heat3d uses it too.
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "fmt/format.h"

#include "weft/weft.h"

#include "decomposition.h"

namespace jacobi3d {

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

  int take_number(std::string_view option, int least) {
    std::string_view text = take_value(option);
    int number = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least) {
      throw UserError(fmt::format("{} must be a whole number of at least {}, not '{}'", option, least, text));
    }
    return number;
  }

 private:
  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

inline Triple take_points(Arguments& arguments) {
  Triple points{};
  points.fill(arguments.take_number("--size", 1));
  if (!arguments.next_is_value()) return points;
  points[1] = arguments.take_number("--size", 1);
  if (!arguments.next_is_value()) throw UserError("--size takes one number, or three: X Y Z");
  points[2] = arguments.take_number("--size", 1);
  return points;
}

inline weft::Kind take_memory(Arguments& arguments) {
  std::string_view name = arguments.take_value("--memory");
  if (std::optional<weft::Kind> kind = weft::memory::kind_from_name(name)) return *kind;
  throw UserError(fmt::format("--memory must be host, emulated or cuda, not '{}'", name));
}

}  // namespace jacobi3d
