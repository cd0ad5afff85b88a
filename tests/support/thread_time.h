// The processor time of the calling thread: other processes on the machine do not make it pass.
#pragma once

#include <chrono>
#include <ctime>

namespace weft::testing {

inline std::chrono::nanoseconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace weft::testing
