// A request: one operation that a program, or a coroutine of the model, waits for.
//
// A request is shared by the handle of the program and by what completes it, so a handle may be freed while the operation is
// in flight. Its memory comes from the PE's pool. Threads: the PE's.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "weft/runtime/block_pool.h"
#include "weft/runtime/scheduler.h"
#include "weft/runtime/work.h"

#include "models/mpi/objects/error_handler.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

// The values that MPI_Status tells. Ranks, tags and error classes are those of mpi.h.
struct Outcome {
  int source = -1;  // MPI_ANY_SOURCE
  int tag = -2;     // MPI_ANY_TAG
  int error = 0;    // MPI_SUCCESS
  bool cancelled = false;
  std::int64_t size_bytes = 0;

  // The outcome of a receive from MPI_PROC_NULL.
  static Outcome of_no_process() { return {.source = -3, .tag = -2}; }
};

class Request : public Object {
 public:
  // The type of a request, which decides what the program may do with it.
  enum class Type : std::uint8_t { kSend, kReceive, kCollective, kGeneralized, kPartitioned };

  Type type() const { return type_; }
  // A persistent request is started, and its handle outlives its completion.
  bool is_persistent() const { return persistent_; }
  void make_persistent() { persistent_ = true; }
  // Started, and the program has not been told of the completion. A request that is not active is complete.
  bool is_active() const { return active_; }
  bool is_complete() const { return complete_; }
  const Outcome& outcome() const { return outcome_; }
  // The communicator, to which errors of a wait belong; null for none.
  const Ref<ErrorScope>& scope() const { return scope_; }
  void set_scope(ErrorScope& scope) { scope_ = Ref<ErrorScope>(scope); }

  // Starts a persistent request. REQUIRES: it is not active.
  virtual void start() {}
  // Asks for the end of an operation; it completes in any case. Returns an error class: functions of the program may fail.
  virtual int cancel() { return 0; }
  // Called by each wait or test that reports the completion, before the outcome is read.
  virtual void query() {}
  // The program frees the handle. Returns an error class.
  virtual int handle_freed() { return 0; }
  // The program gives its handle back.
  void release_handle() {
    if (!is_shared_) release();
  }
  // The program has been told of the completion.
  void deactivate() { active_ = is_shared_; }

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
    static_assert(sizeof(T) <= std::numeric_limits<decltype(size_bytes_)>::max());
    request->scheduler_ = &scheduler;
    request->size_bytes_ = sizeof(T);
    return Ref<T>::adopt(request);
  }

 protected:
  explicit Request(Type type) : Object(ObjectKind::kRequest), type_(type) {}
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
    complete();
  }
  // It is pending again, after a completion that has told the program of an obstacle.
  void reopen() {
    complete_ = false;
    outcome_ = Outcome();
  }
  // With the outcome that has been set.
  void complete() {
    complete_ = true;
    if (waiter_ != nullptr) {
      scheduler_->post(std::exchange(waiter_, nullptr));
    } else if (maker() != nullptr) [[unlikely]] {
      maker()->wake();
    }
  }
  void set_outcome(const Outcome& outcome) { outcome_ = outcome; }
  // Any number of handles refer to it, none of which counts: it stays active and complete. REQUIRES: it is, and outlives the handles.
  void share() { is_shared_ = true; }

  // The last reference has gone, and the request is kept for another operation: until renew() its handle refers to nothing.
  void retire() {
    scope_ = {};
    set_kind(ObjectKind::kFreed);
  }
  // As new; the caller has the only reference.
  void renew() {
    acquire();
    set_kind(ObjectKind::kRequest);
    persistent_ = active_ = false;
  }
  void destroy() override {
    runtime::BlockPool& pool = scheduler_->pool();
    const std::size_t size_bytes = size_bytes_;
    void* const block = dynamic_cast<void*>(this);
    std::destroy_at(this);
    pool.deallocate(block, size_bytes);
  }

 private:
  Type type_;
  bool persistent_ = false;
  bool is_shared_ = false;
  bool active_ = false;
  bool complete_ = true;
  std::uint16_t size_bytes_ = 0;
  Outcome outcome_;
  runtime::Work* waiter_ = nullptr;
  Ref<ErrorScope> scope_;
  runtime::Scheduler* scheduler_ = nullptr;
};

// An operation that has nothing to do: it is complete as soon as it is started.
class FinishedRequest final : public Request {
 public:
  FinishedRequest(Type type, const Outcome& outcome) : Request(type), finished_(outcome) {}
  void start() override {
    activate();
    complete(finished_);
  }
  // Starts it, for any number of handles.
  void start_shared() {
    start();
    share();
  }

 private:
  Outcome finished_;
};

using RequestRef = Ref<Request>;
template <class T>
Ref<Request> as_request(Ref<T> request) {
  return Ref<Request>::adopt(request.leave());
}

// Awaitable, for coroutines of the model: continues when the request is complete, and gives its outcome. The coroutine keeps the
// request.
class Completed : public runtime::ResumeWork {
 public:
  Completed(Request& request, runtime::Scheduler& scheduler) : request_(request), scheduler_(scheduler) {}
  // A frame that is destroyed while it waits must not be resumed.
  ~Completed() {
    if (handle && !request_.is_complete()) request_.forget_waiter();
  }

  bool await_ready() const { return request_.is_complete(); }
  void await_suspend(std::coroutine_handle<> waiting) {
    suspend(waiting, scheduler_.meter());
    request_.set_waiter(this);
  }
  Outcome await_resume() const {
    VirtualRank::set_current(rank_);
    return request_.outcome();
  }

 private:
  Request& request_;
  runtime::Scheduler& scheduler_;
  VirtualRank* rank_ = VirtualRank::current();
};

}  // namespace weft::mpi
