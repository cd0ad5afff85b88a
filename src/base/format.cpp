#include "base/format.h"

#include <fmt/format.h>

namespace weft::base {

std::string format_values(fmt::string_view text, fmt::format_args values) {
  return fmt::vformat(text, values);
}

}  // namespace weft::base
