#pragma once

#include <stdexcept>

namespace miniapps {

// A mistake of the user. The text is one sentence that says what is wrong and what to write instead.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace miniapps
