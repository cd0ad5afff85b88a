// Process: the MPI state of a rank that MPI_Init, or the first session, makes: its messages, its predefined communicators, its waits.
//
// Threads: one at a time calls MPI (MPI_THREAD_SERIALIZED), or those with the CallLock (MPI_THREAD_MULTIPLE).
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "weft/runtime/runtime.h"

#include "models/mpi/collective/collective_request.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/model.h"
#include "models/mpi/p2p/buffer_space.h"
#include "models/mpi/rank.h"
#include "models/mpi/threads/waiting_threads.h"

namespace weft::mpi {

class ConnectedProcesses;

class Process {
 public:
  // `fail` ends the job on all PEs, because this PE's runtime has failed; it does not return.
  using Fail = void (*)();
  // `engine`: of the rank.
  Process(runtime::Runtime& runtime, PointToPoint& engine, Fail fail);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  runtime::Runtime& runtime() const { return runtime_; }
  PointToPoint& engine() const { return engine_; }
  const Ref<Communicator>& world() const { return world_; }
  const Ref<Communicator>& self() const { return self_; }

  // --- Waiting
  // All calls that wait do so here. Returns when `done()` returns true. A rank that shares its process with others lets them
  // run meanwhile. It is woken, and asks `done()` again, when one of its requests completes, when a message for it is kept, and
  // when the coroutine of run() ends. `done()` depends on nothing else. A thread that waits beside others gives up the CallLock, and
  // another one may call `done()` for it.
  template <class Done>
  void wait_until(const Done& done) {
    if (done()) return;
    if (VirtualRank* const rank = VirtualRank::current()) [[unlikely]] {
      do rank->wait();
      while (!done());
      return;
    }
    const auto is_met = [](void* context) { return (*static_cast<const Done*>(context))(); };
    void* const context = const_cast<Done*>(&done);
    const bool is_done =
        threads_ != nullptr ? threads_->wait_until(is_met, context) : runtime_.run_until(is_met, context);
    if (!is_done) [[unlikely]]
      fail_();
  }
  void wait(const Request& request) {
    wait_until([&] { return request.is_complete(); });
  }
  // Moves communication forward, for calls that test.
  void progress();
  // As wait_until(), for a `done()` that other processes of the host change without a message.
  template <class Done>
  void poll_until(const Done& done) {
    if (VirtualRank::current() != nullptr || threads_ != nullptr) {
      while (!done()) {
        progress();
        if (threads_ != nullptr) threads_->let_others_call();
      }
    } else if (!runtime_.poll_until([](void* context) { return (*static_cast<const Done*>(context))(); },
                                    const_cast<Done*>(&done))) {
      fail_();
    }
  }

  // From now on several threads may call MPI at the same time. REQUIRES: their calls take the CallLock.
  void serve_threads();
  bool serves_threads() const { return threads_ != nullptr; }
  // Whether threads wait in wait_until().
  bool has_waiting_threads() const { return threads_ != nullptr && threads_->any(); }

  // Runs a coroutine to its end, for calls that wait. Throws what leaves it.
  template <class T>
  T run(runtime::Task<T> task);

  // Whether collective calls are compared before they begin, see Mpi::checks_calls().
  bool checks_calls() const { return checks_calls_; }

  // The buffer that MPI_Buffer_attach attaches.
  BufferSpace buffer_space;
  // Of all communicators with streams that the program has made, for the end of MPI.
  std::vector<std::weak_ptr<StreamTransfers>> stream_transfers;
  // The processes of other jobs; null until the first call that may connect this one, see connected/connecting.h.
  std::shared_ptr<ConnectedProcesses> connections;
  // The intercommunicator to the processes that have spawned this job; null without them, and once it is freed.
  Communicator* parent = nullptr;
  // How many of MPI_Init and of sessions have not been finalized.
  int num_users = 0;
  // With sessions the job ends when the rank ends, because the program may open another one.
  bool had_sessions = false;

 private:
  static constexpr unsigned kPollsPerYield = 64;

  runtime::Runtime& runtime_;
  PointToPoint& engine_;
  unsigned num_polls_ = 0;  // of a virtual rank
  Fail fail_;
  bool checks_calls_;
  std::unique_ptr<WaitingThreads> threads_;  // null unless it serves several threads
  Ref<Communicator> world_;
  Ref<Communicator> self_;
};

// The result of a coroutine that Process::run() waits for.
template <class T>
struct RunResult {
  std::conditional_t<std::is_void_v<T>, bool, std::optional<T>> value{};
  std::exception_ptr error;
  bool done = false;
  VirtualRank* rank = VirtualRank::current();  // which waits for it
};

template <class T>
runtime::Task<> run_into(runtime::Task<T> task, RunResult<T>& result) {
  try {
    if constexpr (std::is_void_v<T>) {
      co_await std::move(task);
    } else {
      // Named: g++ 12 gives an unnamed one another name in each file, so the frames differ (-Wodr).
      T value = co_await std::move(task);
      result.value.emplace(std::move(value));
    }
  } catch (...) {
    result.error = std::current_exception();
  }
  result.done = true;
  if (result.rank != nullptr) [[unlikely]]
    result.rank->wake();
}

template <class T>
T Process::run(runtime::Task<T> task) {
  RunResult<T> result;
  runtime_.spawn(run_into(std::move(task), result), "a call of MPI");
  wait_until([&] { return result.done; });
  if (result.error) std::rethrow_exception(result.error);
  if constexpr (!std::is_void_v<T>) return std::move(*result.value);
}

// The process of this rank. REQUIRES: between the start and the end of MPI.
inline Process& this_process() { return *this_rank().process; }

}  // namespace weft::mpi
