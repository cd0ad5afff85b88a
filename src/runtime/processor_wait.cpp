#include "runtime/processor_wait.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace weft::runtime {

std::unique_ptr<ProcessorWait> ProcessorWait::open() {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  std::unique_ptr<ProcessorWait> opened(new ProcessorWait(file));
  return opened->read() ? std::move(opened) : nullptr;
}

ProcessorWait::~ProcessorWait() { ::close(file_); }

std::chrono::nanoseconds ProcessorWait::waited() {
  static_cast<void>(read());
  return waited_;
}

// "RUN WAITED SLICES", in ns. A kernel that does not count has zeros.
bool ProcessorWait::read() {
  char text[80];
  const ssize_t size = ::pread(file_, text, sizeof text, 0);
  if (size <= 0) return false;
  const char* const end = text + size;
  std::uint64_t numbers[3] = {};
  const char* at = text;
  for (std::uint64_t& number : numbers) {
    while (at < end && *at == ' ') ++at;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return false;
    at = behind;
  }
  const auto [ran_ns, waited_ns, num_slices] = numbers;
  if (ran_ns == 0 && num_slices == 0) return false;
  waited_ = std::chrono::nanoseconds(waited_ns);
  return true;
}

}  // namespace weft::runtime
