#include "job/run.h"

#include <cmath>
#include <csignal>
#include <memory>
#include <optional>
#include <string_view>

#include "weft/chare/quiescence.h"

#include "await/coroutine.h"
#include "await/future.h"
#include "base/format.h"
#include "chare/reduction.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "engine/ending.h"
#include "engine/engine.h"
#include "job/own_device.h"
#include "job/program_signals.h"
#include "job/start_main.h"
#include "machine/bootstrap/bootstrap.h"
#include "machine/machine.h"
#include "support/errors.h"
#include "support/importable.h"

namespace weft::python {

namespace {

// Lets other Python threads run while the PE sleeps or yields, and signal handlers run afterwards.
class SleepingGil final : public runtime::IdleHook {
 public:
  explicit SleepingGil(Engine& engine) : engine_(engine) { engine_.runtime().set_idle_hook(this); }
  ~SleepingGil() override { engine_.runtime().set_idle_hook(nullptr); }

  void before_sleep() override { thread_ = PyEval_SaveThread(); }
  bool after_sleep() override {
    PyEval_RestoreThread(thread_);
    const bool raised = PyErr_CheckSignals() != 0;
    end_if_forked();
    if (!raised) return true;
    end_by_exception(engine_, "a signal handler");
    return !engine_.interrupted();
  }

 private:
  Engine& engine_;
  PyThreadState* thread_ = nullptr;
};

// Tells the watch of a main that is an ordinary function (weft/_job/plain_main.py) whether the program may go on.
class PythonActivity final : public runtime::ProgramActivity {
 public:
  explicit PythonActivity(Engine& engine) : engine_(engine) { engine_.runtime().set_program_activity(this); }
  ~PythonActivity() override { engine_.runtime().set_program_activity(nullptr); }
  PythonActivity(const PythonActivity&) = delete;
  PythonActivity& operator=(const PythonActivity&) = delete;

  std::optional<std::uint64_t> poll() override {
    if (engine_.sleeps_pending() > 0) return std::nullopt;
    int may_act = -1;
    try {
      const Ref function = import_from("weft._job.plain_main", "may_act");
      const Ref answer = Ref::steal(PyObject_CallNoArgs(function.get()));
      if (answer) may_act = PyObject_IsTrue(answer.get());
    } catch (const PythonError&) {
      may_act = -1;  // its error is set
    }
    end_if_forked();
    if (may_act < 0) end_by_exception(engine_, "the watch of main");
    if (may_act != 0) return std::nullopt;
    return engine_.num_steps();
  }

 private:
  Engine& engine_;
};

// How a job has ended on this PE.
struct End {
  int code = 0;
  int signal = 0;                     // that has ended it, such as SIGINT; 0 for none
  bool by_launcher = false;           // it failed, and its launcher ends the processes
  Ref error;                          // what main raised here; null for nothing
  Ref result = Ref::borrow(Py_None);  // of main
};

// A signal that the end of the job overtook belongs to it.
void take_late_signals(Engine& engine) {
  if (PyErr_CheckSignals() != 0 && !interrupted_by_exception(engine)) throw PythonError();
}

// The launcher ends the job with SIGTERM. One that comes from here on does not cut off what the program does about the failure; one that
// has come already raises in the first call.
void ignore_termination(Engine& engine) {
  const Ref ignore = import_from("weft._job.signals", "ignore_termination");
  while (!Ref::steal(PyObject_CallNoArgs(ignore.get()))) {
    if (!interrupted_by_exception(engine)) throw PythonError();
  }
}

void run_main(PyObject* main, Mains mains, job::Incarnations* incarnations, End& end) {
  RunningEngine running(incarnations);
  Engine& engine = running.engine();
  SleepingGil gil(engine);
  PythonActivity activity(engine);
  WakingSignal<SIGINT> interrupt(engine.runtime().machine());
  WakingSignal<SIGTERM> termination(engine.runtime().machine());
  const StacksOnSignal stacks(engine.job());
  watch_device_libraries(engine);
  StartMain start(engine, main, end.result, mains);
  if (mains == Mains::kOnAllPes || engine.runtime().pe() == 0) start.post();
  end.code = engine.job().run();
  if (incarnations != nullptr && (incarnations->begin_again() || incarnations->has_left())) return;
  end.error = engine.take_main_error();
  end.by_launcher = engine.job().has_launcher() && !engine.runtime().failure().empty();
  if (end.by_launcher) ignore_termination(engine);
  take_late_signals(engine);
  end.signal = engine.interrupting_signal();
  if (end.code == 0 && end.signal == 0) PySys_FormatStderr("%s", engine.unread_report().c_str());
}

// The process's, while its job lasts.
std::unique_ptr<job::Incarnations> kept_incarnations;

// (exit code, the signal that has ended the job or 0, whether a launcher ends the processes, what main returned, what main raised
// on this PE or None). The code is None if the job begins again, by another call, because PEs were lost or their number
// changes; False if it goes on without this PE.
PyObject* run_job(PyObject* main, Mains mains) {
  return guarded([&]() -> PyObject* {
    End end;
    if (mains == Mains::kOnPe0 && kept_incarnations == nullptr)
      kept_incarnations = std::make_unique<job::Incarnations>();
    try {
      run_main(main, mains, mains == Mains::kOnPe0 ? kept_incarnations.get() : nullptr, end);
    } catch (const base::Error& error) {
      // The launcher ended the job while it started, and has said why.
      if (error.code() != base::StatusCode::kCancelled) throw;
      end.code = 1;
      end.by_launcher = true;
    }
    if (mains == Mains::kOnPe0 && kept_incarnations->begin_again())
      return Py_BuildValue("(OiOOO)", Py_None, 0, Py_False, Py_None, Py_None);
    const bool has_left = mains == Mains::kOnPe0 && kept_incarnations->has_left();
    kept_incarnations = nullptr;
    if (has_left) return Py_BuildValue("(OiOOO)", Py_False, 0, Py_False, Py_None, Py_None);
    return Py_BuildValue("(iiOOO)", end.code, end.signal, end.by_launcher ? Py_True : Py_False,
                         end.result.get(), end.error ? end.error.get() : Py_None);
  });
}

PyObject* run(PyObject*, PyObject* main) { return run_job(main, Mains::kOnPe0); }
PyObject* run_on_all(PyObject*, PyObject* main) { return run_job(main, Mains::kOnAllPes); }

// Without a job the launcher's environment answers: scripts ask before weft.run, and after it.
machine::LaunchPlace place_without_job(const char* function) {
  if (Engine::in_forked_child()) Engine::current_on_any_thread();  // throws
  base::Result<machine::LaunchPlace> place = machine::place_in_launch();
  if (place.ok() && (place->num_pes > 0 || std::string_view(function) == "my_pe")) return *place;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("no job is running, and this launcher tells a process its place only in one: "
                   "call weft.{}() in main or in an entry method",
                   function));
}

PyObject* my_pe(PyObject*, PyObject*) {
  return guarded([] {
    Engine* const engine = Engine::running();
    return PyLong_FromLong(engine == nullptr ? place_without_job("my_pe").pe : engine->runtime().pe());
  });
}

PyObject* num_pes(PyObject*, PyObject*) {
  return guarded([] {
    Engine* const engine = Engine::running();
    return PyLong_FromLong(engine == nullptr ? place_without_job("num_pes").num_pes
                                             : engine->runtime().num_pes());
  });
}

// How many PEs the launcher of this process has started: None without one, 0 if it does not say. Throws Error where no job could
// start.
PyObject* launched_pes(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    if (Engine::running() != nullptr) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          "weft.run, or weft.session, was called inside a running job: a process has one at a time");
    }
    base::Result<machine::LaunchPlace> place = machine::place_in_launch();
    if (!place.ok()) throw base::Error(place.status().code(), std::string(place.status().message()));
    if (!place->has_launcher) Py_RETURN_NONE;
    return PyLong_FromLong(place->num_pes);
  });
}

PyObject* end_job(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("weft.exit", {"code"}, 0, values, count, names);
    long code = arguments[0] == nullptr ? 0 : PyLong_AsLong(arguments[0]);
    if (code == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    if (code < 0 || code > 255) {
      throw base::Error(base::StatusCode::kInvalidArgument,
                        base::format("weft.exit({}): an exit code is from 0 to 255", code));
    }
    Engine::current().runtime().exit(static_cast<int>(code));
    Py_RETURN_NONE;
  });
}

PyObject* quiescence(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("quiescence", {"target"}, 0, values, count, keywords);
    Engine& engine = Engine::current();
    if (arguments[0] != nullptr && arguments[0] != Py_None) {
      chare::quiescence(engine.runtime(), target_without_value(arguments[0]));
      Py_RETURN_NONE;
    }
    Ref future = wrap_future(engine, engine.runtime().quiescence());
    static PyObject* const name = PyUnicode_InternFromString("weft.quiescence");
    future_state(future.get())->set_subject(Ref::borrow(name));
    return future.release();
  });
}

// For any thread.
PyObject* post_from_any_thread(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    post_to_pe(Engine::current_on_any_thread(), Ref::borrow(function), Ref(),
               "a function posted from another thread");
    Py_RETURN_NONE;
  });
}

PyObject* encode(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    Encoder encoder;
    encoder.value(value);
    std::vector<std::byte> bytes = encoder.copy();
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                     static_cast<Py_ssize_t>(bytes.size()));
  });
}

PyObject* decode(PyObject*, PyObject* bytes) {
  return guarded([&]() -> PyObject* {
    char* data = nullptr;
    Py_ssize_t size = 0;
    checked(PyBytes_AsStringAndSize(bytes, &data, &size));
    Decoder decoder({reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size)});
    return decoder.value().release();
  });
}

PyObject* importable_key_of(PyObject*, PyObject* function) {
  return guarded([&] { return make_text(importable_key(function, "the function")).release(); });
}

PyObject* imported(PyObject*, PyObject* key) {
  return guarded([&] { return import_key(text_of(key)).release(); });
}

PyObject* standstill(PyObject*, PyObject*) {
  return guarded([] {
    Engine& engine = Engine::current();
    return wrap_future(engine, engine.runtime().standstill()).release();
  });
}

// (hangs): a future of what all PEs wait for, as the report of a program that hangs says it. On PE 0.
PyObject* waits_report(PyObject*, PyObject* hangs) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    auto* const state = new PyFutureState(engine);
    Ref future = make_future_object(state);
    static PyObject* const name = PyUnicode_InternFromString("the report of waits");
    state->set_subject(Ref::borrow(name));
    const runtime::FutureShare<PyFutureState> share(state);
    engine.runtime().report_waits(PyObject_IsTrue(hangs) == 1, [share](const std::string& text) {
      if (!share->is_set()) share->set(make_text(text));
    });
    return future.release();
  });
}

// (function): is called with each report of a program that hangs, in place of the text on stderr. On PE 0.
PyObject* on_hang(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    Engine& engine = Engine::current();
    engine.runtime().set_hang_listener([&engine, share = Ref::borrow(function)](const std::string& text) {
      const Ref argument = make_text(text);
      if (!Ref::steal(PyObject_CallOneArg(share.get(), argument.get())))
        end_by_exception(engine, "the function of weft._core._on_hang");
    });
    Py_RETURN_NONE;
  });
}

PyObject* num_hang_looks(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromUnsignedLongLong(Engine::current().runtime().num_hang_looks()); });
}

// (coroutine, where): runs a coroutine; an exception that leaves it ends the job and names `where`.
PyObject* spawn_coroutine(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments("_spawn", {"coroutine", "where"}, 2, values, count, names);
    spawn(Engine::current(), Ref::borrow(arguments[0]), std::string(text_of(arguments[1])));
    Py_RETURN_NONE;
  });
}

PyObject* sleeps_pending(PyObject*, PyObject*) {
  return guarded([] { return PyLong_FromUnsignedLongLong(Engine::current().sleeps_pending()); });
}

PyObject* fail(PyObject*, PyObject* message) {
  return guarded([&]() -> PyObject* {
    Engine::current().runtime().fail(std::string(text_of(message)));
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_standstill", &standstill, METH_NOARGS, nullptr},
    {"_waits_report", &waits_report, METH_O, nullptr},
    {"_on_hang", &on_hang, METH_O, nullptr},
    {"_num_hang_looks", &num_hang_looks, METH_NOARGS, nullptr},
    {"_spawn", as_method(&spawn_coroutine), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"_sleeps_pending", &sleeps_pending, METH_NOARGS, nullptr},
    {"_fail", &fail, METH_O, nullptr},
    {"_run", &run, METH_O, nullptr},
    {"_run_on_all", &run_on_all, METH_O, nullptr},
    {"_launched_pes", &launched_pes, METH_NOARGS, nullptr},
    {"_encode", &encode, METH_O, nullptr},
    {"_decode", &decode, METH_O, nullptr},
    {"_importable_key", &importable_key_of, METH_O, nullptr},
    {"_imported", &imported, METH_O, nullptr},
    {"my_pe", &my_pe, METH_NOARGS, R"(my_pe()
--

The number of this PE, from 0. May be called from any thread.

Before and after weft.run the launcher's environment answers; a program without a launcher is PE 0.

Raises:
    weft.Error: no job is running, and the environment does not say it.)"},
    {"num_pes", &num_pes, METH_NOARGS, R"(num_pes()
--

How many PEs the job has. May be called from any thread.

Before and after weft.run the launcher's environment answers; a program without a launcher has one PE.

Raises:
    weft.Error: no job is running, and the environment does not say it: PMIx says it to running jobs only.)"},
    {"exit", as_method(&end_job), METH_FASTCALL | METH_KEYWORDS, R"(exit(code=0)
--

Ends the job on every PE; may be called on any PE and returns at once.

weft.run then returns, or raises SystemExit(code) if the code is not 0. Messages that are in flight are dropped.

Args:
    code: the exit code of the job, from 0 to 255.

Raises:
    weft.Error: no job is running, or the code is out of range.)"},
    {"quiescence", as_method(&quiescence), METH_FASTCALL | METH_KEYWORDS, R"(quiescence(target=None)
--

Awaitable: ready when every PE is idle and no message and no channel transfer is in flight.

Sleeps do not count, nor do coroutines that wait for something other than a message. Does not block. With a target nothing is
to be awaited: when the job is quiescent, the target runs once.

Args:
    target: None; or a weft.Future, which then gets None; or an entry method of an element, of a whole collection or of a
        section (``proxy[i].method``, ``proxy.method``, ``section.method``, also with ``bind``), which then runs without
        further arguments.

Returns:
    a weft.Future of None; with a target None.

Raises:
    weft.Error: no job is running, or no target.)"},
    {"post_from_any_thread", &post_from_any_thread, METH_O, R"(post_from_any_thread(function, /)
--

Calls ``function()`` on this PE's thread in one of its next turns; wakes the PE if it sleeps. May be called from any
thread and does not block. The function runs in a copy of the caller's context (contextvars).

An exception that the function raises ends the job; SystemExit ends it with its code. The function is dropped if
the job ends first.

Args:
    function: a function without arguments.

Raises:
    weft.Error: no job is running in this process.)"},
    {},
};

}  // namespace

void init_run(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
