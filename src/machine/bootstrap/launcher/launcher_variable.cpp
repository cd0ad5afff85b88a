#include "machine/bootstrap/launcher/launcher_variable.h"

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/format.h"

namespace weft::machine::bootstrap {

using base::Result;
using base::Status;
using base::StatusCode;

Result<int> launcher_variable(const char* name, int low, int high) {
  const char* text = std::getenv(name);
  if (text == nullptr) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format("WEFT_BOOTSTRAP is set but {} is not: start the program with `weft run`, which sets "
                     "both, or unset WEFT_BOOTSTRAP",
                     name));
  }
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stopped != end || value < low || value > high) {
    return Status(
        StatusCode::kInvalidArgument,
        base::format(
            "the environment variable {}='{}' is not a number from {} to {}: it is set by `weft run` "
            "and not meant to be changed",
            name, text, low, high));
  }
  return value;
}

}  // namespace weft::machine::bootstrap
