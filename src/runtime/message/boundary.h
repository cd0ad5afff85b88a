// For functions that the machine calls. No exception may leave them, because the frames above may be C.
//
// Private to the message layer.
#pragma once

#include <exception>
#include <new>

#include "weft/runtime/scheduler.h"

namespace weft::runtime {

// Calls `function`; an exception ends the job, naming `where`.
template <class Function>
void at_boundary(Scheduler& scheduler, const char* where, Function function) noexcept {
  try {
    try {
      function();
    } catch (...) {
      scheduler.fail_unawaited(std::current_exception(), where);
    }
  } catch (...) {
    scheduler.fail("out of memory");  // short enough to need no allocation
  }
}

}  // namespace weft::runtime
