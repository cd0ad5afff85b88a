#include "await/timer.h"

#include <memory>
#include <utility>

#include "weft/base/error.h"

#include "await/future.h"
#include "base/format.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// A waiter for a timer of the scheduler; the timer ends with it. Any thread that has the GIL may end it: the PE's thread has given
// the GIL away only while it sleeps, and does not look at its timers then.
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  virtual ~Waiter() { stop(); }

  // REQUIRES: once.
  void start(Engine& engine, double seconds) { alarm_ = new Alarm(engine, seconds, *this); }
  // Does nothing if the timer is over.
  void stop() {
    if (Alarm* const alarm = std::exchange(alarm_, nullptr)) alarm->stop();
  }

 protected:
  // The time has passed. May destroy this object.
  virtual void ring() = 0;
  // The job ends first.
  virtual void dropped() {}

 private:
  // In the scheduler's list of timers, then in its queue; deletes itself when it leaves them.
  class Alarm final : public runtime::Work {
   public:
    Alarm(Engine& engine, double seconds, Waiter& waiter)
        : runtime::Work(&Alarm::turn),
          engine_(engine),
          timer_(engine.runtime().post_after(seconds, this)),
          waiter_(&waiter) {
      engine.sleep_started();
    }
    void stop() {
      waiter_ = nullptr;
      if (Engine::in_forked_child()) return;  // the timer is the parent's
      if (engine_->runtime().cancel_timer(timer_)) end();
    }

   private:
    static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
      auto* const alarm = static_cast<Alarm*>(self);
      Waiter* const waiter = alarm->waiter_;
      alarm->end();
      if (waiter == nullptr) return;
      waiter->alarm_ = nullptr;
      action == runtime::WorkAction::kRun ? waiter->ring() : waiter->dropped();
    }
    void end() {
      engine_->sleep_ended();
      delete this;
    }

    EngineRef engine_;
    runtime::Scheduler::TimerId timer_;
    Waiter* waiter_;  // null: it has stopped
  };

  Alarm* alarm_ = nullptr;
};

double seconds_from(PyObject* duration, const char* use) {
  const double seconds = PyFloat_AsDouble(duration);
  if (seconds == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  if (seconds >= 0 && seconds <= 1e9) return seconds;
  throw base::Error(base::StatusCode::kInvalidArgument,
                    base::format("{}({}): give seconds from 0 to 1e9", use, seconds));
}

// A future that is set when the time has passed, and which has this object. Nothing can see it when it is dropped.
class Sleep final : public Waiter {
 public:
  explicit Sleep(PyFutureState& state) : state_(state) {}

 private:
  void ring() override {
    state_.acquire();
    state_.set(Ref::borrow(Py_None));
    state_.release();
  }

  PyFutureState& state_;
};

PyObject* sleep(PyObject*, PyObject* duration) {
  return guarded([&]() -> PyObject* {
    const double seconds = seconds_from(duration, "weft.sleep");
    Engine& engine = Engine::current();
    auto* const state = new PyFutureState(engine);
    Ref future = make_future_object(state);
    static PyObject* const name = PyUnicode_InternFromString("weft.sleep");
    state->set_subject(Ref::borrow(name));
    state->expect_reader();
    auto waiter = std::make_shared<Sleep>(*state);
    waiter->start(engine, seconds);
    state->keep(std::move(waiter));
    return future.release();
  });
}

// --- Timers of the package

class CallLater final : public Waiter {
 public:
  explicit CallLater(Engine& engine, Ref function) : engine_(engine), function_(std::move(function)) {}
  void cancel() {
    stop();
    const Ref function = std::move(function_);  // dropped last: it may have the last share of this object
  }

 private:
  void ring() override {
    const EngineRef engine = engine_;
    const Ref function = std::move(function_);
    const Ref result = Ref::steal(PyObject_CallNoArgs(function.get()));
    end_if_forked();
    if (!result) end_by_exception(*engine, "a timer");
  }
  void dropped() override { const Ref function = std::move(function_); }

  EngineRef engine_;
  Ref function_;  // null when the timer is over
};

struct TimerObject {
  PyObject_HEAD CallLater* timer;
};

PyTypeObject* timer_type = nullptr;

void deallocate(PyObject* self) {
  delete reinterpret_cast<TimerObject*>(self)->timer;
  free_object(self);
}

PyObject* call_later(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_call_later", {"seconds", "function"}, 2, values, count, nullptr);
    const double seconds = seconds_from(arguments[0], "a timeout");
    Engine& engine = Engine::current();
    Ref object = checked(PyType_GenericAlloc(timer_type, 0));
    auto* const timer = new CallLater(engine, Ref::borrow(arguments[1]));
    reinterpret_cast<TimerObject*>(object.get())->timer = timer;
    timer->start(engine, seconds);
    return object.release();
  });
}

PyObject* cancel(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    const Ref held = Ref::borrow(self);
    reinterpret_cast<TimerObject*>(self)->timer->cancel();
    Py_RETURN_NONE;
  });
}

PyMethodDef methods[] = {{"cancel", &cancel, METH_NOARGS, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"weft._Timer", sizeof(TimerObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyMethodDef functions[] = {
    {"sleep", &sleep, METH_O, R"(sleep(seconds, /)
--

Awaitable: ready after `seconds`. Other entry methods of the PE run meanwhile.

Args:
    seconds: from 0 to 1e9; a float.

Returns:
    a weft.Future of None. If it is dropped, and has no callback, its timer is released.

Raises:
    weft.Error: no job is running, or `seconds` is out of range.)"},
    {"_call_later", as_method(&call_later), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void init_timer(PyObject* module) {
  timer_type = add_type(module, spec);
  add_functions(module, functions);
}

}  // namespace weft::python
