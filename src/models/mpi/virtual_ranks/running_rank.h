// RunningRank: the state of the rank that runs, for this_rank() of rank.h.
#pragma once

#include <atomic>

namespace weft::mpi {

class Rank;

// Which state this_rank() returns. Any thread may ask.
class RunningRank {
 public:
  static Rank& state() {
    if (Rank* const rank = state_.load(std::memory_order_relaxed)) [[likely]]
      return *rank;
    return of_process();
  }

 private:
  friend class VirtualRank;
  // Null: the process's own.
  static void set(Rank* rank) { state_.store(rank, std::memory_order_relaxed); }
  // The rank of a process that has one, which is made at its first use.
  static Rank& of_process();

  static inline std::atomic<Rank*> state_ = nullptr;
};

}  // namespace weft::mpi
