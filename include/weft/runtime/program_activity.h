// A program's activity on a PE besides messages, for Runtime::standstill(). A language implements it.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::runtime {

struct ProgramActivity {
  virtual ~ProgramActivity() = default;
  // Nothing if the program may go on without a message: a timer, another thread, a signal handler. Otherwise how many steps the
  // program has made: how often the scheduler has run code of it that waited or was called back. Called when the PE is idle.
  virtual std::optional<std::uint64_t> poll() = 0;
};

}  // namespace weft::runtime
