// Python code that runs as work of the scheduler: coroutines, stepped with PyIter_Send, and callbacks.
#pragma once

#include <functional>

#include "weft/runtime/task.h"
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

 protected:
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
  PySendResult raise_inside(PyObject** result);
  void finished() noexcept override {}
  void abandon() noexcept override;

  EngineRef engine_;
  Ref coroutine_;
  Ref context_;
  RunningChare running_ = running_chare;
  runtime::WorkTimeShare time_;  // of the chare that has started it, if it is measured
  bool is_watched_;              // it is measured, or watch_steps() was called
};

// Whether a called function turned out to be a coroutine that has to be run.
inline bool is_coroutine(PyObject* object) { return PyCoro_CheckExact(object); }

// Runs a coroutine without an awaiting caller. An exception ends the job with a message that names `where`.
void spawn(Engine& engine, Ref coroutine, std::string where, Ref context = {});

// Calls callback(argument) from the scheduler when posted; an exception ends the job, naming `where`. If it
// returns a coroutine that is run too. Both run in a copy of the context in which the callback was given.
runtime::Work* make_callback(Engine& engine, Ref callback, Ref argument, std::string where);

}  // namespace weft::python
