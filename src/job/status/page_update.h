// One change of what other processes read under a sequence number (status_page.h, other_hosts.h).
#pragma once

#include <atomic>
#include <cstdint>

namespace weft::job {

// Readers see an odd sequence until it goes.
class PageUpdate {
 public:
  explicit PageUpdate(std::atomic<std::uint64_t>& sequence)
      : sequence_(sequence), before_(sequence.load(std::memory_order_relaxed)) {
    sequence_.store(before_ + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~PageUpdate() { sequence_.store(before_ + 2, std::memory_order_release); }
  PageUpdate(const PageUpdate&) = delete;
  PageUpdate& operator=(const PageUpdate&) = delete;

 private:
  std::atomic<std::uint64_t>& sequence_;
  std::uint64_t before_;
};

}  // namespace weft::job
