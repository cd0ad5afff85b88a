// The ranks of this process when it has several: user-level threads that weft_mpi_host_run() runs to their ends.
//
// They run on the process's main stack until the first of them starts MPI. From then on the scheduler of the PE resumes them.
// When all have left MPI, the job ends, and they run on without it.
// Threads: the one that called weft_mpi_host_run().
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/mpi/weft_mpi.h"
#include "weft/runtime/runtime.h"

#include "models/mpi/p2p/rank_map.h"
#include "models/mpi/rank.h"
#include "models/mpi/virtual_ranks/rank_objects.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"
#include "ranks/fiber.h"
#include "ranks/host_interface.h"

namespace weft::mpi {

class HostedRanks;

class HostedRank final : public VirtualRank {
 public:
  HostedRank(HostedRanks& all, int number, const Fiber::Stack& stack);

  int number() const { return number_; }
  bool has_ended() const { return has_ended_; }
  // REQUIRES: has_ended().
  int exit_code() const { return exit_code_; }
  void run_on() { run(); }
  // On the rank's own stack.
  [[noreturn]] void end(int code);

  // --- Moves. The object lies on the rank's stack and moves with it.
  // REQUIRES: the rank is suspended, no longer takes part in MPI, and has packed its objects. Frees what it has in this process.
  void depart();
  // It has come to this process.
  void arrive(runtime::Scheduler& scheduler);
  const void* lowest_in_use() const { return fiber_.lowest_in_use(); }

  // A function of the program that is called when the rank moves, see Weft_register_move_function(). Returns false if there are too many.
  bool add_move_function(Weft_move_function function, void* data);
  // On the rank's own stack.
  void call_move_functions(int event) const;

  // How long the rank has run since the last call, if HostedRanks measures it. On the rank's own stack.
  double take_load_s();

 private:
  friend class HostedRanks;

  static void body(void* self);
  void resume() override;
  void suspend() override;

  void make_state();
  // The runtime of OpenMP keeps the region for the thread, which the next rank of this PE would find.
  void suspend_in_region();
  // Adds the time since the begin of the slice, and begins another one.
  void add_slice();

  HostedRanks& all_;
  const int number_;
  struct MoveFunction {
    Weft_move_function function = nullptr;
    void* data = nullptr;
  };
  static constexpr std::size_t kMostMoveFunctions = 32;

  // Here, where they move with the rank: programs keep their addresses.
  PredefinedAttributes predefined_attributes_;
  std::unique_ptr<RankObjects> own_objects_;
  std::unique_ptr<Rank> own_state_;
  Fiber fiber_;
  bool has_ended_ = false;
  int exit_code_ = 0;
  double load_s_ = 0;
  std::chrono::steady_clock::time_point slice_begin_;  // while the rank runs
  std::array<MoveFunction, kMostMoveFunctions> move_functions_;
  std::size_t num_move_functions_ = 0;
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
  // As leave_job(), without waiting, for a rank that ends.
  void leave_job_now() { --num_in_job_; }

  // On the main stack: the job has started. The ranks become work of the scheduler.
  void enter_job(runtime::Runtime& runtime);

  // Whether the rank that runs is in a parallel region of OpenMP, if only in one of one thread.
  bool is_in_parallel_region() const { return program_.openmp != nullptr && program_.openmp->level() > 0; }

  // Whether the time is measured in which each rank runs. It costs two looks at the clock for each switch.
  void measure_loads(bool wanted) { measures_loads_ = wanted; }

  // --- Moves
  const weft_mpi_host_program& program() const { return program_; }
  std::span<HostedRank* const> ranks() const { return ranks_; }
  // A rank of this PE; or where that of another PE will be, if the host gives the stacks.
  HostedRank* place_of(int rank) const;
  // The ranks are where the map says. REQUIRES: those that have left have departed, and those that have come lie at their
  // places.
  void replace_map(RankMap map);

  // --- Ranks of a protected state, in a job that has begun again. They come in place of those that this process has made.
  // The first call frees these. REQUIRES: no rank has begun. `map`: where the ranks will be.
  void expect_restored(RankMap map);
  // Null if none are expected.
  const RankMap* restored_map() const { return restored_map_ ? &*restored_map_ : nullptr; }
  // REQUIRES: restored_map() is not null, and its ranks of this PE lie at their places.
  void take_restored();

 private:
  friend class HostedRank;

  Fiber::Stack stack_of(int rank) const;
  HostedRank* make_rank(int rank);
  void run_in_job();
  void rank_ended(int code);

  static inline HostedRanks* current_ = nullptr;

  const weft_mpi_host_program program_;
  const Hooks hooks_;
  const pthread_t thread_ = pthread_self();
  const pid_t process_ = getpid();
  RankMap map_;
  std::optional<RankMap> restored_map_;
  std::vector<HostedRank*> ranks_;  // of this PE, never destroyed
  HostedRank* running_ = nullptr;
  std::deque<HostedRank*> ready_;  // while there is no job
  const std::function<void()>* main_call_ = nullptr;
  runtime::Runtime* runtime_ = nullptr;  // while there is a job
  int num_in_job_ = 0;                   // ranks that have not left it
  int num_alive_ = 0;
  bool measures_loads_ = false;
  int job_code_ = 0;
  int exit_code_ = 0;
};

}  // namespace weft::mpi
