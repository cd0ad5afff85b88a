// What the machine calls: no exception may leave it, since the frames above may be C's.
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
    scheduler.fail("out of memory");  // short enough that no memory is needed
  }
}

}  // namespace weft::runtime
