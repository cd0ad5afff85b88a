// The words of a window at each rank: the lock of its epochs, and the lock of accumulates on its memory.
//
// They lie in a segment of the rank. Ranks on its host work on them by atomic instructions, others by atomic operations of src/rma.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace weft::mpi {

struct alignas(64) WindowControl {
  // How many ranks hold a shared lock; or kExclusive and the rank that holds an exclusive one.
  std::uint64_t access = 0;
  std::uint32_t accumulating = 0;  // 1: held
  std::uint32_t num_waiting = 0;   // for the lock of accumulates
};

class AccessWord {
 public:
  static constexpr std::uint64_t kExclusive = std::uint64_t{1} << 62;

  static bool is_free(std::uint64_t word, bool is_exclusive) {
    return is_exclusive ? word == 0 : word < kExclusive;
  }
  // What `rank` adds to lock, and takes off to unlock.
  static std::uint64_t share(bool is_exclusive, int rank) {
    return is_exclusive ? kExclusive + static_cast<std::uint64_t>(rank) : 1;
  }
  // The rank that holds an exclusive lock; -1 if none does.
  static int holder(std::uint64_t word) {
    return word < kExclusive ? -1 : static_cast<int>(word - kExclusive);
  }

  static bool try_lock(WindowControl& control, bool is_exclusive, int rank) {
    const std::atomic_ref word(control.access);
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    while (is_free(seen, is_exclusive)) {
      if (word.compare_exchange_weak(seen, seen + share(is_exclusive, rank), std::memory_order_acq_rel,
                                     std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  static void unlock(WindowControl& control, bool is_exclusive, int rank) {
    std::atomic_ref(control.access).fetch_sub(share(is_exclusive, rank), std::memory_order_acq_rel);
  }
};

// Held while accumulates change the memory of a rank. All of a window take it, whatever their type and operator, so each is atomic
// against all others.
class AccumulateLock {
 public:
  explicit AccumulateLock(WindowControl& control)
      : word_(control.accumulating), num_waiting_(control.num_waiting) {
    acquire();
  }
  ~AccumulateLock() { word_.store(0, std::memory_order_release); }
  // Lets one that waits have the lock before this one takes it again. A loop that only gave it back would take it before others see
  // that it is free.
  void step_aside() {
    const std::uint32_t num_waiting = num_waiting_.load(std::memory_order_relaxed);
    if (num_waiting == 0) return;
    word_.store(0, std::memory_order_release);
    for (int yields = 0; yields < kMostYields && !spin_until([&] { return has_moved(num_waiting); });
         ++yields)
      sched_yield();
    acquire();
  }
  AccumulateLock(const AccumulateLock&) = delete;
  AccumulateLock& operator=(const AccumulateLock&) = delete;

 private:
  // Some milliseconds: one that waits may have died.
  static constexpr int kMostYields = 4096;

  void acquire() {
    if (word_.exchange(1, std::memory_order_acquire) != 0) [[unlikely]]
      wait();
  }
  [[gnu::noinline]] void wait() const {
    num_waiting_.fetch_add(1, std::memory_order_relaxed);
    do {
      // The holder may need this processor.
      while (!spin_until([this] { return word_.load(std::memory_order_relaxed) == 0; })) sched_yield();
    } while (word_.exchange(1, std::memory_order_acquire) != 0);
    num_waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  // Whether another has the lock, or has had it.
  bool has_moved(std::uint32_t num_waiting) const {
    return word_.load(std::memory_order_relaxed) != 0 ||
           num_waiting_.load(std::memory_order_relaxed) != num_waiting;
  }
  template <class Condition>
  static bool spin_until(const Condition& condition) {
    for (int spins = 0; spins < 256; ++spins)
      if (condition()) return true;
    return false;
  }

  std::atomic_ref<std::uint32_t> word_;
  std::atomic_ref<std::uint32_t> num_waiting_;
};

}  // namespace weft::mpi
