// The options of jacobi3d that heat3d has too.
#pragma once

#include <optional>
#include <string_view>

#include "fmt/format.h"

#include "weft/weft.h"

#include "command_line/arguments.h"
#include "decomposition.h"

namespace jacobi3d {

using miniapps::Arguments;

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
