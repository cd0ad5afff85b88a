// From a Result to an exception of the API.
#pragma once

#include <utility>

#include "weft/base/error.h"
#include "weft/base/status.h"

namespace weft::base {

// Throws Error if there is no value.
template <class T>
T value_or_throw(Result<T> result) {
  if (!result.ok()) throw_status(result.status());
  return std::move(result).value();
}

}  // namespace weft::base
