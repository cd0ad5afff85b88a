#include "models/mpi/virtual_ranks/running_code.h"

#include <utility>

#include "models/mpi/threads/waiting_threads.h"

namespace weft::mpi {

void* LibraryRuns::begin() {
  CallLock& lock = CallLock::of_process();
  if (lock.is_used()) {
    lock.enter();
    return &lock;
  }
  VirtualRank* const rank = RunningCode::program();
  if (rank != nullptr) RunningCode::program_ = nullptr;
  return rank;
}

void LibraryRuns::end(void* before) {
  CallLock& lock = CallLock::of_process();
  if (before == &lock) return lock.leave();
  RunningCode::program_ = static_cast<VirtualRank*>(before);
}

void ProgramRuns::begin() {
  CallLock& lock = CallLock::of_process();
  if (lock.is_used()) {
    if (!lock.is_mine()) return;
    WaitingThreads::give_up_driving();
    holds_ = lock.release();
    state_ = State::kUnlocked;
  } else if (VirtualRank::current() != nullptr) {
    before_ = std::exchange(RunningCode::program_, VirtualRank::current());
    state_ = State::kInRank;
  }
}

void ProgramRuns::end() {
  if (state_ == State::kInRank) {
    RunningCode::program_ = before_;
    return;
  }
  CallLock& lock = CallLock::of_process();
  if (!lock.is_used()) return;  // the function has forked the process, and this is the child
  lock.take_back(holds_);
}

}  // namespace weft::mpi
