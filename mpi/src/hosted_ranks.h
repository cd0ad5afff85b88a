// The ranks of this process when it has several: user-level threads that weft_mpi_host_run() runs to their ends.
//
// They run on the process's main stack until the first of them starts MPI. From then on the scheduler of the PE resumes them.
// When all have left MPI, the job ends, and they run on without it.
// Threads: the one that called weft_mpi_host_run().
#pragma once

#include <pthread.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "weft/runtime/runtime.h"

#include "fiber.h"
#include "host_interface.h"
#include "models/mpi/p2p/rank_map.h"
#include "models/mpi/rank.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

class HostedRanks;

class HostedRank final : public VirtualRank {
 public:
  HostedRank(HostedRanks& all, int number);

  int number() const { return number_; }
  bool has_ended() const { return has_ended_; }
  void run_on() { run(); }
  // On the rank's own stack.
  [[noreturn]] void end(int code);

 private:
  friend class HostedRanks;

  static void body(void* self);
  void resume() override;
  void suspend() override { fiber_.suspend(); }

  HostedRanks& all_;
  const int number_;
  Rank own_state_;
  Fiber fiber_;
  bool has_ended_ = false;
};

class HostedRanks {
 public:
  // How MPI, which is in environment.cpp, takes part. All are called on the main stack except rank_ends().
  struct Hooks {
    // Runs the rest of the job after all ranks have left it. Returns its exit code.
    int (*finish_job)() = nullptr;
    // The runtime has failed while ranks waited; does not return.
    void (*fail_job)() = nullptr;
    // On the stack of a rank that ends with that code; it may wait. Ends the job if the rank may not end yet.
    void (*rank_ends)(HostedRank& rank, int code) = nullptr;
  };

  // Throws Error for a program that is not possible.
  HostedRanks(const weft_mpi_host_program& program, const Hooks& hooks);

  // Null in a process with one rank.
  static HostedRanks* current() { return current_; }
  // The rank on whose stack the caller runs; null on another stack.
  static HostedRank* running();

  // The rank whose program runs, see RunningCode; null on a thread of the program.
  static HostedRank* running_program();

  // Returns what weft_mpi_host_run() returns.
  int run();

  const RankMap& map() const { return map_; }
  int pe() const { return program_.pe; }

  // --- On the stack of a rank
  // Calls `function` on the main stack, where no stack of a rank limits it. REQUIRES: there is no job yet.
  void call_on_main_stack(const std::function<void()>& function);
  // The rank has done its part of the end of MPI. Returns when the job has ended, with its exit code.
  int leave_job();
  // The same without waiting, for a rank that ends.
  void leave_job_now() { --num_in_job_; }

  // On the main stack: the job has started. The ranks become work of the scheduler.
  void enter_job(runtime::Runtime& runtime);

 private:
  friend class HostedRank;

  Fiber::Stack stack_of(int rank) const;
  void run_in_job();
  void rank_ended(int code);

  static inline HostedRanks* current_ = nullptr;

  const weft_mpi_host_program program_;
  const Hooks hooks_;
  const pthread_t thread_ = pthread_self();
  RankMap map_;
  std::vector<std::unique_ptr<HostedRank>> ranks_;
  HostedRank* running_ = nullptr;
  std::deque<HostedRank*> ready_;  // while there is no job
  const std::function<void()>* main_call_ = nullptr;
  runtime::Runtime* runtime_ = nullptr;  // while there is a job
  int num_in_job_ = 0;                   // ranks that have not left it
  int num_alive_ = 0;
  int job_code_ = 0;
  int exit_code_ = 0;
};

}  // namespace weft::mpi
