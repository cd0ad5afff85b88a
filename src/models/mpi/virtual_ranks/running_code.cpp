#include "models/mpi/virtual_ranks/running_code.h"

#include <utility>

#include "models/mpi/threads/waiting_threads.h"

namespace weft::mpi {

namespace {

constexpr std::uintptr_t kIsReported = 1;

}  // namespace

std::uintptr_t LibraryRuns::begin(const char* function) {
  CallLock& lock = CallLock::of_process();
  void* before = nullptr;
  if (lock.is_used()) {
    lock.enter();
    before = &lock;
  } else if (VirtualRank* const rank = RunningCode::program()) {
    RunningCode::program_ = nullptr;
    before = rank;
  }
  const bool is_reported = function != nullptr && RunningCode::listener_ != nullptr;
  if (is_reported) RunningCode::listener_->call_began(function);
  return reinterpret_cast<std::uintptr_t>(before) | (is_reported ? kIsReported : 0);
}

void LibraryRuns::end(std::uintptr_t before) {
  const bool is_reported = (before & kIsReported) != 0;
  if (is_reported && RunningCode::listener_ != nullptr) RunningCode::listener_->call_ended();
  void* const address = reinterpret_cast<void*>(before & ~kIsReported);
  CallLock& lock = CallLock::of_process();
  if (address == &lock) return lock.leave();
  if (address != nullptr) RunningCode::program_ = static_cast<VirtualRank*>(address);
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
