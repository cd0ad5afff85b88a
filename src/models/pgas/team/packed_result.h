// Results of collectives, which arrive packed.
#pragma once

#include <cstddef>
#include <exception>
#include <span>

#include "weft/base/pup.h"
#include "weft/runtime/future.h"

namespace weft::pgas {

// If the bytes do not unpack, or there is no memory, the result is that error.
inline void set_packed_result(runtime::FutureState& result, std::span<const std::byte> bytes) {
  try {
    Pup p = Pup::unpacker(bytes.data(), bytes.size(), &result.runtime());
    result.set_packed(p);
  } catch (...) {
    result.set_error(std::current_exception());
  }
}

}  // namespace weft::pgas
