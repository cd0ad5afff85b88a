// Python code that runs as work of the scheduler: coroutines, stepped with PyIter_Send, and callbacks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/runtime/task.h"
#include "weft/runtime/wait_list.h"
#include "weft/runtime/work.h"
#include "weft/runtime/work_meter.h"

#include "await/running_chare.h"
#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// A coroutine that the scheduler steps until it ends. Its awaitables are those of this extension; awaiting
// another raises weft.Error inside it. What it sets of contextvars is seen in it alone.
class Coroutine : public runtime::Work, public runtime::DetachedTask {
 public:
  // `context`: where it runs; null for a copy of the current context.
  Coroutine(Engine& engine, Ref coroutine, Ref context = {});

  // Runs it to its first await or its end. It deletes itself in the end.
  void start();

  // Raises the exception where the coroutine waits: at once, or where it waits next if what it awaits is over or if it runs now. What has
  // arrived for it is therefore not lost. Another exception that waits to be raised stays.
  void interrupt(const Ref& exception);
  // Takes an exception back that interrupt() has not raised.
  void take_back(const Ref& exception);
  struct Interruptions {
    Coroutine* coroutine;  // null: it has ended
    std::vector<Ref> to_raise;
    bool has_forgotten = false;  // what it awaited: it is posted, to raise the first one
  };
  // Made when it is asked for.
  const std::shared_ptr<Interruptions>& interruptions();

 protected:
  ~Coroutine() override {
    if (interruptions_ != nullptr) [[unlikely]]
      interruptions_->coroutine = nullptr;
  }

  // Called once.
  virtual void returned(Ref result) = 0;
  // With Python's error indicator set, and to be cleared.
  virtual void raised() = 0;
  // Called each time that it has suspended, and when it has ended.
  virtual void after_step() {}
  // Called after watch_steps(), when it has suspended and before it is resumed.
  virtual void suspended() {}
  virtual void resumed() {}
  void watch_steps() { is_watched_ = true; }
  // Who the coroutine is, for reports: by default a coroutine of the chare that has started it.
  virtual void name_in(runtime::Wait& wait) const;
  const RunningChare& started_by() const { return running_; }
  // Gives back the memory of the whole object.
  virtual void destroy() { delete this; }

  Engine& engine() const { return *engine_; }

 private:
  static void turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action);
  // Returns whether it has ended, and so has been destroyed.
  bool step();
  // Returns whether it has ended.
  bool run_to_await();
  bool suspend(Ref yielded);
  bool has_to_raise() const { return interruptions_ != nullptr && !interruptions_->to_raise.empty(); }
  // Sets Python's error to the first exception of interrupt().
  [[gnu::cold, gnu::noinline]] void raise_first();
  PySendResult raise_inside(PyObject** result);
  void finished() noexcept override {}
  void abandon() noexcept override;
  void list_waits(runtime::WaitList& waits) const override;

  EngineRef engine_;
  Ref coroutine_;
  Ref context_;
  Ref awaited_;                                   // while it is suspended
  std::shared_ptr<Interruptions> interruptions_;  // null until it is asked for
  RunningChare running_ = running_chare;
  runtime::WorkTimeShare time_;  // of the chare that has started it, if it is measured
  bool is_watched_;              // it is measured, or watch_steps() was called
};

void init_coroutine(PyObject* module);

// Whether a called function turned out to be a coroutine that has to be run.
inline bool is_coroutine(PyObject* object) { return PyCoro_CheckExact(object); }

// Runs a coroutine without an awaiting caller. An exception ends the job with a message that names `where`.
void spawn(Engine& engine, Ref coroutine, std::string where, Ref context = {});

// Throws base::Error if it is no function.
void expect_callback(PyObject* callback);
// Calls callback(argument) from the scheduler when posted; an exception ends the job, naming `where`. If it
// returns a coroutine that is run too. Both run in a copy of the context in which the callback was given.
runtime::Work* make_callback(Engine& engine, Ref callback, Ref argument, std::string where);

// --- For other threads than the PE's. They hold the GIL, so that the PE's thread is in user code or has given the GIL away while it
// rests: they may read, and make objects. Everything else is posted to the PE's thread.
// Calls `function` with the tuple `arguments` (null: without) on the PE's thread, soon and in a copy of the caller's context. An
// exception ends the job, naming `where`.
void post_to_pe(Engine& engine, Ref function, Ref arguments, const char* where);
// The same for a method of `self` with one argument.
void post_method_to_pe(Engine& engine, PyObject* self, const char* method, PyObject* argument,
                       const char* where);

}  // namespace weft::python
