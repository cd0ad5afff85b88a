// Whose code runs in a process with several ranks: the program of a rank, or the library. weft-mpi-host asks, because memory that
// the program of a rank allocates belongs to the rank, and memory that the library allocates belongs to the PE.
//
// A rank switches only while the library runs, so a switch changes nothing here.
// Threads: the PE's.
#pragma once

#include <pthread.h>

#include <utility>

#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

class RunningCode {
 public:
  // The rank whose program runs. Null while the library runs, on threads of the program, and in a process with one rank.
  static VirtualRank* program() { return is_here() ? program_ : nullptr; }
  // Whether the caller is the thread on which ranks run. Threads of a program are others.
  static bool is_pe_thread() { return pthread_equal(pthread_self(), thread_) != 0; }
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

  static inline VirtualRank* program_ = nullptr;
  static inline pthread_t thread_{};
};

// Until its end the library runs: in each call of MPI.
class LibraryRuns {
 public:
  LibraryRuns() : before_(RunningCode::program()) {
    if (before_ != nullptr) [[unlikely]]
      RunningCode::program_ = nullptr;
  }
  ~LibraryRuns() {
    if (before_ != nullptr) [[unlikely]]
      RunningCode::program_ = before_;
  }
  LibraryRuns(const LibraryRuns&) = delete;
  LibraryRuns& operator=(const LibraryRuns&) = delete;

 private:
  VirtualRank* const before_;
};

// Until its end the program of VirtualRank::current() runs: in each function of the program that the library calls.
// REQUIRES: the caller is the PE's thread if it has several ranks.
class ProgramRuns {
 public:
  ProgramRuns() : is_virtual_(VirtualRank::current() != nullptr) {
    if (is_virtual_) [[unlikely]]
      before_ = std::exchange(RunningCode::program_, VirtualRank::current());
  }
  ~ProgramRuns() {
    if (is_virtual_) [[unlikely]]
      RunningCode::program_ = before_;
  }
  ProgramRuns(const ProgramRuns&) = delete;
  ProgramRuns& operator=(const ProgramRuns&) = delete;

 private:
  const bool is_virtual_;
  VirtualRank* before_ = nullptr;
};

}  // namespace weft::mpi
