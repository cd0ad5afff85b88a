// For the functions that UCX calls. No exception may pass through the frames above them, because these are C.
//
// The layers above catch what they can report. What is left is a failed allocation in a completion or a handler:
// the process then ends with a sentence, and the launcher ends the job.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <exception>

namespace weft::machine::ucx {

[[noreturn, gnu::cold, gnu::noinline]] inline void abort_in_callback(const char* reason) noexcept {
  std::fprintf(
      stderr,
      "weft: %s in a function that the network library called: this PE cannot continue; if its memory is "
      "exhausted, keep fewer or smaller messages in flight\n",
      reason);
  std::abort();
}

// Calls `function` and returns its result.
template <class Function>
auto at_boundary(Function function) noexcept {
  try {
    return function();
  } catch (const std::exception& error) {
    abort_in_callback(error.what());
  } catch (...) {
    abort_in_callback("an unknown exception");
  }
}

}  // namespace weft::machine::ucx
