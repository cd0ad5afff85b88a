// The job as Python sees it: what weft.run makes and every object of this extension refers to.
//
// At most one runs at a time in a process. Its PE's thread is the one that called weft.run; it holds the GIL
// except while it sleeps, so nothing here needs a lock. Python objects may outlive the run: each holds a
// share of the Engine, whose runtime is closed by then but still there.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/chare/chares.h"
#include "weft/job/job.h"
#include "weft/memory/buffer.h"
#include "weft/runtime/runtime.h"
#include "weft/runtime/task.h"

#include "engine/lost_calls.h"
#include "support/support.h"

namespace weft::pgas {
class Pgas;
}

namespace weft::python {

class Engine {
 public:
  // Collective over all PEs, like Job. With `incarnations` the job begins again after losses where the launcher offers it.
  explicit Engine(job::Incarnations* incarnations);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The running one; throws Error where there is none, and on any other thread than its PE's.
  static Engine& current();
  // The running engine, for the few functions that any thread may call. Throws Error if no job is running.
  static Engine& current_on_any_thread();
  bool is_closed() const { return closed_; }
  // Null where there is none.
  static Engine* running() { return running_; }
  // Whether this process was forked by a PE during a job: it has no job, and its parent's must not notice it.
  static bool in_forked_child() { return in_forked_child_; }

  job::Job& job() { return *job_; }
  runtime::Runtime& runtime() { return job_->runtime(); }
  chare::Chares& chares() { return chares_; }
  pgas::Pgas& pgas() { return pgas_; }
  // Throws Error once the job has ended: collections and channels are gone by then. And on any other thread
  // than the PE's, which would not notice what another one posts while it sleeps.
  void expect_open() const {
    if (closed_) throw_closed();
    if (!is_on_this_thread()) throw_other_thread();
  }
  // For what other threads may do as well: reading, and what only makes objects. Throws Error once the job has ended.
  void expect_open_on_any_thread() const {
    if (closed_) throw_closed();
  }
  // Whether expect_open() does not throw.
  bool is_open_here() const { return !closed_ && is_on_this_thread(); }
  // For calls that do not need an open job. Throws Error on another thread than the PE's while a job runs.
  static void refuse_other_threads() {
    if (running_ != nullptr && !running_->is_on_this_thread()) throw_other_thread();
  }
  bool is_on_this_thread() const { return pthread_equal(pthread_self(), thread_) != 0; }

  // A signal that ends programs: ends the job. weft.run raises KeyboardInterrupt after SIGINT, SystemExit after SIGTERM.
  void interrupt(int signal);
  bool interrupted() const { return interrupting_signal_ != 0; }
  // 0 for none.
  int interrupting_signal() const { return interrupting_signal_; }

  // Drops `owned`, a part of the machine or the memory layer, on the PE's thread. Python objects are deallocated
  // on any thread that holds the GIL. On the PE's thread, and when no job runs, it is dropped at once. A forked
  // child never drops it: the memory is its parent's.
  static void drop_on_pe_thread(std::shared_ptr<void> owned);

  // Streams of the PE's memory layer; create throws base::Error. A destroyed stream still does what is
  // queued.
  memory::StreamHandle create_stream(memory::Place place);
  void destroy_stream(memory::Place place, memory::StreamHandle stream);
  // One of our own per device: where other libraries make their work visible, and where kernels go that name
  // no stream. Throws base::Error.
  memory::StreamHandle own_stream(memory::Place place);

  // Sleeps of weft.sleep that are not over.
  void sleep_started() { ++sleeps_pending_; }
  void sleep_ended() { --sleeps_pending_; }
  std::uint64_t sleeps_pending() const { return sleeps_pending_; }
  // Steps of coroutines, and callbacks, see runtime::ProgramActivity.
  void step_made() { ++steps_; }
  std::uint64_t num_steps() const { return steps_; }

  // Asynchronous generators that were left before their end, and whose `finally` waits. When main has returned, the job ends
  // after them.
  void closing_started() { ++closings_; }
  void closing_ended();
  void exit_after_closings();

  // --- Calls whose results the program does not read
  LostCalls& lost_calls() { return lost_calls_; }
  // main has returned on this PE alone. Ends the job when the outcomes of the lost calls of all PEs are there, or a second later: an
  // exception among them is an error of the program.
  void exit_after_lost_calls();
  // A future was dropped that the program has not read. `subject`: what it is of.
  void count_unread(PyObject* subject);
  // A sentence for the end of the job, also about lost calls that have no outcome; empty if the program has read all.
  std::string unread_report() const;

  // The exception that left main, which ends the job: weft.run raises it. Null for none. Moved out, because objects in its traceback
  // have shares of the engine.
  Ref take_main_error() { return std::move(main_error_); }
  // Ends the job with code 1. The job fails if the other PEs do not end in time.
  void end_by_main(Ref error);

  // The coroutine of main, if weft.run runs it on this PE alone; null for none. Borrowed, set and reset by the
  // object that runs it.
  PyObject* lone_main() const { return lone_main_; }
  void set_lone_main(PyObject* coroutine) {
    lone_main_ = coroutine;
    collective_watch_ = Ref();
  }
  // Watches the collective operations that are begun on this PE while there is a lone main, see
  // pgas/teams/lone_main.h. Null until it is needed.
  Ref& collective_watch() { return collective_watch_; }

  void acquire() { ++references_; }
  void release() {
    if (--references_ == 0) delete this;
  }

 private:
  friend class RunningEngine;
  friend void init_engine();
  ~Engine() = default;
  runtime::Task<> end_after_lost_calls();
  [[noreturn]] static void throw_closed();
  // Runs in each process that this one forks.
  static void forget_in_forked_child();
  [[noreturn]] static void throw_other_thread();

  static inline Engine* running_ = nullptr;
  static inline bool in_forked_child_ = false;
  std::unique_ptr<job::Job> job_;
  chare::Chares& chares_;
  pgas::Pgas& pgas_;
  pthread_t thread_ = pthread_self();
  std::uint64_t references_ = 0;
  std::vector<std::pair<memory::Place, memory::StreamHandle>> own_streams_;
  std::uint64_t sleeps_pending_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t closings_ = 0;
  bool exits_after_closings_ = false;
  PyObject* lone_main_ = nullptr;
  Ref collective_watch_;
  bool closed_ = false;
  int interrupting_signal_ = 0;
  LostCalls lost_calls_;
  std::uint64_t num_unread_ = 0;
  std::vector<std::string> unread_;  // the names of the first ones
  Ref main_error_;
};

// Once, when the extension is initialised.
void init_engine();

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
  explicit RunningEngine(job::Incarnations* incarnations);
  ~RunningEngine();
  RunningEngine(const RunningEngine&) = delete;
  RunningEngine& operator=(const RunningEngine&) = delete;
  Engine& engine() { return *engine_; }

 private:
  EngineRef engine_;
};

}  // namespace weft::python
