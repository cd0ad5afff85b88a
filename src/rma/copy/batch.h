// Operations of the machine and the memory layer that a coroutine awaits together.
//
//   Batch batch(runtime);
//   batch.start([&](base::Completion* completion) { return machine.put(..., completion); });
//   co_await batch;
//   if (batch.status().failed()) ...
//
// Await it before it is destroyed: the operations use it. A frame that is destroyed at the end of the job need not, because
// all operations have ended then.
//
// Threads: the PE's.
#pragma once

#include <coroutine>
#include <cstddef>
#include <deque>
#include <utility>

#include "weft/base/completion.h"
#include "weft/base/status.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/work.h"

namespace weft::rma {

class Batch : private runtime::ResumeWork {
 public:
  explicit Batch(runtime::Messenger& messenger) : messenger_(messenger) {}
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Does nothing after a failure.
  template <class Start>
  void start(Start start_operation) {
    if (status_.failed()) return;
    One& one = operations_.emplace_back(this);
    ++num_pending_;
    base::Status started = start_operation(static_cast<base::Completion*>(&one));
    if (!started.is_pending()) ended(std::move(started));
  }

  // The first failure.
  const base::Status& status() const { return status_; }

  bool await_ready() const { return num_pending_ == 0; }
  void await_suspend(std::coroutine_handle<> waiting) { suspend(waiting, messenger_.meter()); }
  void await_resume() { handle = nullptr; }

 private:
  struct One : base::Completion {
    explicit One(Batch* batch_in)
        : base::Completion([](base::Completion* self, base::Status status, std::size_t) {
            static_cast<One*>(self)->batch->ended(std::move(status));
          }),
          batch(batch_in) {}
    Batch* batch;
  };

  void ended(base::Status status) {
    if (status.failed() && status_.ok()) status_ = std::move(status);
    if (--num_pending_ == 0 && handle) messenger_.post(this);
  }

  runtime::Messenger& messenger_;
  std::deque<One> operations_;
  std::size_t num_pending_ = 0;
  base::Status status_;
};

}  // namespace weft::rma
