// The words of a window at each rank: the lock of its epochs, and the lock of accumulates on its memory.
//
// They lie in a segment of the rank. Ranks on its host work on them by atomic instructions, others by atomic operations of src/rma.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace weft::mpi {

struct alignas(64) WindowControl {
  // How many ranks hold a shared lock, or kExclusive.
  std::uint64_t access = 0;
  std::uint32_t accumulating = 0;
};

class AccessWord {
 public:
  static constexpr std::uint64_t kExclusive = std::uint64_t{1} << 62;

  static bool is_free(std::uint64_t word, bool is_exclusive) {
    return is_exclusive ? word == 0 : word < kExclusive;
  }
  static std::uint64_t share(bool is_exclusive) { return is_exclusive ? kExclusive : 1; }

  static bool try_lock(WindowControl& control, bool is_exclusive) {
    const std::atomic_ref word(control.access);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (is_free(seen, is_exclusive)) {
      if (word.compare_exchange_weak(seen, seen + share(is_exclusive), std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  static void unlock(WindowControl& control, bool is_exclusive) {
    std::atomic_ref(control.access).fetch_sub(share(is_exclusive), std::memory_order_acq_rel);
  }
};

// Held while accumulates change the memory of a rank. All of a window take it, whatever their type and operator, so each is atomic
// against all others.
class AccumulateLock {
 public:
  explicit AccumulateLock(WindowControl& control) : word_(control.accumulating) {
    while (word_.exchange(1, std::memory_order_acquire) != 0) wait();
  }
  ~AccumulateLock() { word_.store(0, std::memory_order_release); }
  AccumulateLock(const AccumulateLock&) = delete;
  AccumulateLock& operator=(const AccumulateLock&) = delete;

 private:
  // The holder may need this processor.
  void wait() const {
    for (int spins = 0; word_.load(std::memory_order_relaxed) != 0; ++spins) {
      if (spins % 256 == 255) sched_yield();
    }
  }

  std::atomic_ref<std::uint32_t> word_;
};

}  // namespace weft::mpi
