// The job as Python sees it: what weft.run makes and every object of this extension refers to.
//
// At most one runs at a time in a process. Its PE's thread is the one that called weft.run; it holds the GIL
// except while it sleeps, so nothing here needs a lock. Python objects may outlive the run: each holds a
// share of the Engine, whose runtime is closed by then but still there.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/job/job.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/runtime.h"

#include "support/support.h"

namespace weft::python {

class Engine {
 public:
  // Collective over all PEs, like Job.
  Engine() : job_(std::make_unique<job::Job>()), chares_(job_->runtime().model<chare::Chares>()) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The running one; throws Error where there is none, and on any other thread than its PE's.
  static Engine& current();
  // The same for the few things that any thread may do.
  static Engine& current_on_any_thread();
  bool is_closed() const { return closed_; }
  // Null where there is none.
  static Engine* running() { return running_; }

  job::Job& job() { return *job_; }
  runtime::Runtime& runtime() { return job_->runtime(); }
  chare::Chares& chares() { return chares_; }
  // Throws Error once the job has ended: collections and channels are gone by then. And on any other thread
  // than the PE's, which would not notice what another one posts while it sleeps.
  void expect_open() const {
    if (closed_) throw_closed();
    if (!is_on_this_thread()) throw_other_thread();
  }
  bool is_on_this_thread() const { return pthread_equal(pthread_self(), thread_) != 0; }

  // Ctrl-C: ends the job. weft.run raises KeyboardInterrupt, or SystemExit where a launcher says why.
  void interrupt() {
    interrupted_ = true;
    runtime().fail("interrupted");
  }
  bool interrupted() const { return interrupted_; }

  // Drops `owned` on the PE's thread: Python objects die on any thread, also while the PE sleeps without the
  // GIL, and what belongs to the machine or the memory layer is that thread's. Now, when this is it or when
  // no job runs.
  static void let_go(std::shared_ptr<void> owned);

  // Streams of the PE's memory layer; create throws base::Error. A destroyed stream still does what is
  // queued.
  memory::StreamHandle create_stream(memory::Place place);
  void destroy_stream(memory::Place place, memory::StreamHandle stream);
  // One of our own per device: where other libraries make their work visible, and where kernels go that name
  // no stream. Throws base::Error.
  memory::StreamHandle own_stream(memory::Place place);

  void acquire() { ++references_; }
  void release() {
    if (--references_ == 0) delete this;
  }

 private:
  friend class RunningEngine;
  ~Engine() = default;
  [[noreturn]] static void throw_closed();
  [[noreturn]] static void throw_other_thread();

  static inline Engine* running_ = nullptr;
  std::unique_ptr<job::Job> job_;
  chare::Chares& chares_;
  pthread_t thread_ = pthread_self();
  std::uint64_t references_ = 0;
  std::vector<std::pair<memory::Place, memory::StreamHandle>> own_streams_;
  bool closed_ = false;
  bool interrupted_ = false;
};

// A share of an engine, for members of Python objects.
class EngineRef {
 public:
  EngineRef() = default;
  explicit EngineRef(Engine& engine) : engine_(&engine) { engine_->acquire(); }
  EngineRef(const EngineRef& other) : engine_(other.engine_) {
    if (engine_ != nullptr) engine_->acquire();
  }
  EngineRef& operator=(EngineRef other) noexcept {
    std::swap(engine_, other.engine_);
    return *this;
  }
  ~EngineRef() {
    if (engine_ != nullptr) engine_->release();
  }
  Engine* operator->() const { return engine_; }
  Engine& operator*() const { return *engine_; }

 private:
  Engine* engine_ = nullptr;
};

// Makes the engine of a run and, at the end of the run, closes it.
class RunningEngine {
 public:
  RunningEngine();
  ~RunningEngine();
  RunningEngine(const RunningEngine&) = delete;
  RunningEngine& operator=(const RunningEngine&) = delete;
  Engine& engine() { return *engine_; }

 private:
  EngineRef engine_;
};

}  // namespace weft::python
