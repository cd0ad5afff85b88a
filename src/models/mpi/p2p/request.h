// A request: one operation that a program, or a coroutine of the model, waits for.
//
// A request is shared by the handle of the program and by what completes it, so a handle may be freed while the operation is
// in flight. Its memory comes from the PE's pool. Threads: the PE's.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "weft/runtime/block_pool.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/work.h"

#include "models/mpi/counted.h"

namespace weft::mpi {

class Communicator;

// What MPI_Status tells. Ranks, tags and error classes are those of mpi.h.
struct Outcome {
  int source = -1;  // MPI_ANY_SOURCE
  int tag = -2;     // MPI_ANY_TAG
  int error = 0;    // MPI_SUCCESS
  bool cancelled = false;
  std::int64_t size_bytes = 0;

  // The outcome of a receive from MPI_PROC_NULL.
  static Outcome of_no_process() { return {.source = -3, .tag = -2}; }
};

class Request : public Counted {
 public:
  // What the program may do with it.
  enum class Kind : std::uint8_t { kSend, kReceive, kCollective, kGeneralized };

  Kind kind() const { return kind_; }
  // A persistent request is started, and its handle outlives its completion.
  bool is_persistent() const { return persistent_; }
  void make_persistent() { persistent_ = true; }
  // Started, and the program has not been told of the completion. A request that is not active counts as complete.
  bool is_active() const { return active_; }
  bool is_complete() const { return complete_; }
  const Outcome& outcome() const { return outcome_; }
  // For the errors of a wait; null for none.
  Communicator* communicator() const { return communicator_; }
  // The caller keeps the communicator alive, see Communicator.
  void set_communicator(Communicator* communicator) { communicator_ = communicator; }

  // Starts a persistent request. REQUIRES: it is not active.
  virtual void start() {}
  // Asks for the end of an operation; it completes in any case.
  virtual void cancel() {}
  // Called by each wait or test that reports the completion, before the outcome is read.
  virtual void query() {}
  // The program has been told of the completion.
  void deactivate() { active_ = false; }

  // Posts `work` once, when the request is complete. REQUIRES: it is not complete, and there is no other waiter.
  void set_waiter(runtime::Work* work) { waiter_ = work; }
  void forget_waiter() { waiter_ = nullptr; }

  // Makes a request in memory of the scheduler's pool. The caller gets the only reference.
  template <class T, class... Arguments>
  static Ref<T> make(runtime::Scheduler& scheduler, Arguments&&... arguments) {
    void* const block = scheduler.pool().allocate(sizeof(T));
    T* request = nullptr;
    try {
      request = new (block) T(std::forward<Arguments>(arguments)...);
    } catch (...) {
      scheduler.pool().deallocate(block, sizeof(T));
      throw;
    }
    request->scheduler_ = &scheduler;
    request->size_bytes_ = sizeof(T);
    return Ref<T>::adopt(request);
  }

 protected:
  explicit Request(Kind kind) : kind_(kind) {}
  runtime::Scheduler& scheduler() const { return *scheduler_; }

  // An operation begins.
  void activate() {
    active_ = true;
    complete_ = false;
    outcome_ = Outcome();
  }
  // The operation is over. The last reference may be given back after this call.
  void complete(const Outcome& outcome) {
    outcome_ = outcome;
    complete_ = true;
    if (waiter_ != nullptr) scheduler_->post(std::exchange(waiter_, nullptr));
  }
  void set_outcome(const Outcome& outcome) { outcome_ = outcome; }

 private:
  void destroy() override {
    runtime::BlockPool& pool = scheduler_->pool();
    const std::size_t size_bytes = size_bytes_;
    void* const block = dynamic_cast<void*>(this);
    std::destroy_at(this);
    pool.deallocate(block, size_bytes);
  }

  Kind kind_;
  bool persistent_ = false;
  bool active_ = false;
  bool complete_ = true;
  Outcome outcome_;
  runtime::Work* waiter_ = nullptr;
  Communicator* communicator_ = nullptr;
  runtime::Scheduler* scheduler_ = nullptr;
  std::size_t size_bytes_ = 0;
};

using RequestRef = Ref<Request>;

// Awaitable, for coroutines of the model: continues when the request is complete, and gives its outcome.
class Completed {
 public:
  explicit Completed(Request& request, runtime::Scheduler& scheduler)
      : awaiter_(request, scheduler) {}

  struct Awaiter : runtime::ResumeWork {
    Awaiter(Request& request_in, runtime::Scheduler& scheduler_in)
        : request(request_in), scheduler(scheduler_in) {}
    bool await_ready() const { return request.is_complete(); }
    void await_suspend(std::coroutine_handle<> waiting) {
      suspend(waiting, scheduler.meter());
      request.set_waiter(this);
    }
    const Outcome& await_resume() const { return request.outcome(); }
    // A frame that is destroyed while it waits must not be resumed.
    ~Awaiter() {
      if (handle && !request.is_complete()) request.forget_waiter();
    }
    Request& request;
    runtime::Scheduler& scheduler;
  };
  Awaiter& operator co_await() { return awaiter_; }

 private:
  Awaiter awaiter_;
};

}  // namespace weft::mpi
