// The chare whose code runs on the PE's thread, for errors that name it.
#pragma once

#include <cstdint>
#include <utility>

namespace weft::python {

struct RunningChare {
  std::uint64_t collection = 0;  // its id; 0: main, or a callback that main has given
  std::uint64_t index = 0;
};

// Under the GIL; set on the PE's thread only.
inline RunningChare running_chare;

// While it lives, code of that chare runs.
class WhileRunning {
 public:
  explicit WhileRunning(const RunningChare& chare) : before_(std::exchange(running_chare, chare)) {}
  ~WhileRunning() { running_chare = before_; }
  WhileRunning(const WhileRunning&) = delete;
  WhileRunning& operator=(const WhileRunning&) = delete;

 private:
  RunningChare before_;
};

}  // namespace weft::python
