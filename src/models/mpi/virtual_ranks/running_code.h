// Whose code runs in a process with several ranks: the program of a rank, or the library. weft-mpi-host asks, because memory that
// the program of a rank allocates belongs to the rank, and memory that the library allocates belongs to the PE.
//
// A rank switches only while the library runs, so a switch changes nothing here.
// In a process with one rank, whose threads may call MPI at the same time, the library holds the CallLock while it runs.
// Threads: the PE's; with the CallLock all.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "models/mpi/threads/call_lock.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

// Hears of the calls of MPI, from the thread that calls.
class CallListener {
 public:
  virtual ~CallListener() = default;
  // `function`: "MPI_Send"; never destroyed.
  virtual void call_began(const char* function) = 0;
  virtual void call_ended() = 0;
};

class RunningCode {
 public:
  // The rank whose program runs. Null while the library runs, on threads of the program, and in a process with one rank.
  static VirtualRank* program() { return is_here() ? program_ : nullptr; }
  // Whether the caller is the thread on which ranks run. Threads of a program are others.
  static bool is_pe_thread() { return pthread_equal(pthread_self(), thread_) != 0; }
  // Whether LibraryRuns and ProgramRuns have anything to do: there are several ranks, calls take the CallLock, or are reported. It is the
  // only thing that a call looks at in a process with one rank, one of whose threads calls MPI at a time.
  static bool is_noted() { return is_noted_.load(std::memory_order_relaxed); }
  // Whether calls take the CallLock. REQUIRES: one thread calls MPI, and the process has one rank.
  static void use_lock(bool is_used) {
    CallLock::of_process().use(is_used);
    has_lock_or_ranks_ = is_used;
    note();
  }
  // From now on the listener hears of each call; null: none does. REQUIRES: the caller may call MPI.
  static void report_calls(CallListener* listener) {
    listener_ = listener;
    note();
  }
  // In a process that one with the CallLock has forked.
  static void leave_lock_of_parent() {
    listener_ = nullptr;
    if (CallLock::of_process().is_used()) {
      CallLock::of_process().give_up_after_fork();
      has_lock_or_ranks_ = false;
    }
    note();
  }
  // The process has several ranks, which run on the caller's thread. Only this thread calls MPI.
  static void expect_ranks() {
    CallLock::of_process().use(false);
    thread_ = pthread_self();
  }
  // REQUIRES: the rank begins or ends, and the caller is the PE's thread.
  static void set_program(VirtualRank* rank) {
    thread_ = pthread_self();
    program_ = rank;
  }

 private:
  friend class LibraryRuns;
  friend class ProgramRuns;
  // Threads of a program may make some calls of MPI, such as MPI_Initialized().
  static bool is_here() { return program_ != nullptr && is_pe_thread(); }

  static void note() {
    is_noted_.store(has_lock_or_ranks_ || listener_ != nullptr, std::memory_order_relaxed);
  }

  static inline std::atomic<bool> is_noted_ = true;
  static inline bool has_lock_or_ranks_ = true;
  static inline CallListener* listener_ = nullptr;
  static inline VirtualRank* program_ = nullptr;
  static inline pthread_t thread_{};
};

// Until its end the library runs: in each call of MPI. `function`: which is reported; null: none is.
class LibraryRuns {
 public:
  explicit LibraryRuns(const char* function = nullptr) {
    if (RunningCode::is_noted()) [[unlikely]]
      before_ = begin(function);
  }
  ~LibraryRuns() {
    if (before_ != 0) [[unlikely]]
      end(before_);
  }
  LibraryRuns(const LibraryRuns&) = delete;
  LibraryRuns& operator=(const LibraryRuns&) = delete;

 private:
  // The address of the VirtualRank whose program ran before, or of the CallLock without this hold; one more if the call is reported. A
  // value, so that it stays in a register.
  static std::uintptr_t begin(const char* function);
  static void end(std::uintptr_t before);

  std::uintptr_t before_ = 0;
};

// Until its end the program of VirtualRank::current() runs: in each function of the program that the library calls. Other threads may
// call MPI meanwhile: such a function may need what a thread holds that waits for the CallLock, for example Python's interpreter.
// REQUIRES: the caller is the PE's thread if it has several ranks.
class ProgramRuns {
 public:
  ProgramRuns() {
    if (RunningCode::is_noted()) [[unlikely]]
      begin();
  }
  ~ProgramRuns() {
    if (state_ != State::kNone) [[unlikely]]
      end();
  }
  ProgramRuns(const ProgramRuns&) = delete;
  ProgramRuns& operator=(const ProgramRuns&) = delete;

 private:
  enum class State : std::uint8_t { kNone, kInRank, kUnlocked };

  void begin();
  void end();

  State state_ = State::kNone;
  int holds_ = 0;                  // if the state is kUnlocked
  VirtualRank* before_ = nullptr;  // if the state is kInRank
};

}  // namespace weft::mpi
