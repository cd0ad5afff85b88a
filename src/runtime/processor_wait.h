// How long a thread has waited for a processor: it could run, and other threads ran.
//
// Linux counts it for each thread (the second number of /proc/thread-self/schedstat). Waits of a virtual machine for a processor of
// its host are not in it. Threads: waited() is of the thread that has called open(); any thread may call it.
#pragma once

#include <chrono>
#include <memory>

namespace weft::runtime {

class ProcessorWait {
 public:
  // Null if the system does not say it.
  static std::unique_ptr<ProcessorWait> open();
  ProcessorWait(const ProcessorWait&) = delete;
  ProcessorWait& operator=(const ProcessorWait&) = delete;
  ~ProcessorWait();

  // A system call of about a microsecond. The last known time if the system does not say it any more.
  std::chrono::nanoseconds waited();

 private:
  explicit ProcessorWait(int file) : file_(file) {}
  // Returns whether the file says it.
  bool read();

  int file_;
  std::chrono::nanoseconds waited_{};
};

}  // namespace weft::runtime
