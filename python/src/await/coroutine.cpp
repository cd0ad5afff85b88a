#include "await/coroutine.h"

#include <coroutine>
#include <memory>
#include <optional>

#include "await/awaitable.h"
#include "await/context.h"
#include "base/format.h"
#include "engine/ending.h"
#include "support/errors.h"

namespace weft::python {

Coroutine::Coroutine(Engine& engine, Ref coroutine, Ref context)
    : runtime::Work(&Coroutine::turn),
      engine_(engine),
      coroutine_(std::move(coroutine)),
      context_(context ? std::move(context) : copy_of_context()),
      time_(engine.runtime().meter().running()),
      is_watched_(time_.get() != nullptr) {}

void Coroutine::start() {
  engine_->runtime().start_detached(this, std::noop_coroutine());
  if (!step() && is_watched_) [[unlikely]]
    suspended();
}

void Coroutine::turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
  // Dropped, it does nothing: the runtime abandons it with all other coroutines.
  if (action != runtime::WorkAction::kRun) return;
  auto* const coroutine = static_cast<Coroutine*>(self);
  if (!coroutine->is_watched_) [[likely]] {
    coroutine->step();
    return;
  }
  coroutine->resumed();
  std::optional<runtime::WorkMeter::Span> span;
  if (coroutine->time_.get() != nullptr) span.emplace(runtime.meter(), *coroutine->time_.get());
  if (!coroutine->step()) coroutine->suspended();
}

bool Coroutine::step() {
  engine_->step_made();
  const bool has_ended = run_to_await();
  after_step();
  if (has_ended) destroy();
  return has_ended;
}

namespace {

// asyncio's functions raise one of these if no event loop runs: the error then names Weft's function.
[[gnu::cold, gnu::noinline]] void explain_missing_loop() {
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0 && PyErr_ExceptionMatches(PyExc_AttributeError) == 0)
    return;
  if (PyDict_GetItemString(PyImport_GetModuleDict(), "asyncio") == nullptr) return;
  const Ref error = PythonError::take();
  try {
    const Ref explain = import_from("weft._await.asyncio_errors", "explain");
    checked(PyObject_CallOneArg(explain.get(), error.get()));
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
}

}  // namespace

bool Coroutine::run_to_await() {
  const SteppedByScheduler stepped(*this);
  const WhileRunning running(running_);
  PyObject* result = nullptr;
  PySendResult outcome = PYGEN_NEXT;
  {
    const InContext entered(context_.get());
    if (interruptions_ != nullptr && std::exchange(interruptions_->has_forgotten, false)) [[unlikely]] {
      Ref forgotten = std::move(awaited_);
      if (!has_to_raise()) {  // the exception was taken back
        if (suspend(std::move(forgotten))) return false;
      } else {
        forgotten = Ref();
        raise_first();
      }
      outcome = raise_inside(&result);
    } else {
      awaited_ = Ref();
      outcome = PyIter_Send(coroutine_.get(), Py_None, &result);
    }
    while (outcome == PYGEN_NEXT) {
      end_if_forked();
      if (suspend(Ref::steal(result))) return false;
      outcome = raise_inside(&result);
    }
  }
  end_if_forked();
  if (outcome == PYGEN_RETURN) {
    returned(Ref::steal(result));
  } else {
    explain_missing_loop();
    raised();
  }
  return true;
}

// Returns false with the error indicator set when it cannot wait for that.
bool Coroutine::suspend(Ref yielded) {
  if (has_to_raise()) [[unlikely]] {
    raise_first();
    return false;
  }
  try {
    if (wait_for(yielded.get(), this)) {
      awaited_ = std::move(yielded);
      return true;
    }
    if (yielded.get() == Py_None) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          "an entry method awaited asyncio.sleep(0) or another bare yield, which Weft's scheduler "
          "cannot wait for; await weft.yield_now()");
    }
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format(
            "an entry method awaited a {}, which Weft's scheduler cannot wait for; await futures, "
            "channel operations and calls of weft; use weft.gather, weft.wait, weft.sleep and weft.timeout "
            "in place of asyncio's functions, and wrap other coroutines of asyncio in "
            "weft.asyncio_future(...)",
            type_name_of(yielded.get())));
  } catch (...) {
    set_python_error();
    return false;
  }
}

const std::shared_ptr<Coroutine::Interruptions>& Coroutine::interruptions() {
  if (interruptions_ == nullptr) interruptions_ = std::make_shared<Interruptions>(Interruptions{this, {}});
  return interruptions_;
}

void Coroutine::interrupt(const Ref& exception) {
  std::vector<Ref>& to_raise = interruptions()->to_raise;
  to_raise.push_back(exception);
  if (to_raise.size() > 1 || interruptions_->has_forgotten) return;
  if (!awaited_ || !forget_wait(awaited_.get(), this)) return;
  interruptions_->has_forgotten = true;
  engine_->runtime().post(this);
}

void Coroutine::take_back(const Ref& exception) {
  if (interruptions_ != nullptr)
    std::erase_if(interruptions_->to_raise, [&](const Ref& one) { return one.get() == exception.get(); });
}

void Coroutine::raise_first() {
  const Ref exception = std::move(interruptions_->to_raise.front());
  interruptions_->to_raise.erase(interruptions_->to_raise.begin());
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
}

// Its blocks that are left, such as `with decimal.localcontext()`, reset what they have set in its own context.
void Coroutine::abandon() noexcept {
  {
    const InContext entered(context_.get());
    coroutine_ = Ref();
    awaited_ = Ref();
  }
  destroy();
}

void Coroutine::name_in(runtime::Wait& wait) const {
  if (running_.collection == 0) {
    wait.who = {{runtime::Party::kMains, static_cast<std::uint64_t>(engine_->runtime().pe())},
                base::format("main on PE {}", engine_->runtime().pe())};
  } else {
    wait.who = {{running_.collection, running_.index},
                engine_->chares().collection(running_.collection).element_name(running_.index)};
  }
}

void Coroutine::list_waits(runtime::WaitList& waits) const {
  if (!awaited_) return;  // it is posted
  runtime::Wait wait;
  name_in(wait);
  if (wait.where.empty()) wait.where = wait.who.name;
  try {
    // (where the program awaits, what it awaits there)
    const Ref stand = import_from("weft._job.waits", "stand_of");
    const Ref found =
        checked(PyObject_CallFunctionObjArgs(stand.get(), coroutine_.get(), awaited_.get(), nullptr));
    const std::string place(text_of(PyTuple_GET_ITEM(found.get(), 0)));
    if (!place.empty()) wait.where += base::format(" ({})", place);
    PyObject* const things = PyTuple_GET_ITEM(found.get(), 1);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(things); ++i) {
      runtime::Wait one;
      describe_wait(PyTuple_GET_ITEM(things, i), one, waits);
      if (!one.guess.empty()) wait.guess = one.guess;
      if (!one.what.empty()) wait.what += (wait.what.empty() ? "" : "; ") + one.what;
      wait.on.insert(wait.on.end(), one.on.begin(), one.on.end());
    }
  } catch (const PythonError&) {
    PyErr_Clear();
  }
  waits.add(std::move(wait));
}

PySendResult Coroutine::raise_inside(PyObject** result) {
  Ref error = PythonError::take();
  *result = PyObject_CallMethod(coroutine_.get(), "throw", "O", error.get());
  if (*result != nullptr) return PYGEN_NEXT;
  if (!PyErr_ExceptionMatches(PyExc_StopIteration)) return PYGEN_ERROR;
  Ref stop = PythonError::take();
  *result = PyObject_GetAttrString(stop.get(), "value");
  return *result == nullptr ? PYGEN_ERROR : PYGEN_RETURN;
}

namespace {

class Spawned final : public Coroutine {
 public:
  Spawned(Engine& engine, Ref coroutine, std::string where, Ref context)
      : Coroutine(engine, std::move(coroutine), std::move(context)), where_(std::move(where)) {}

 private:
  void returned(Ref) override {}
  void raised() override { end_by_exception(engine(), where_); }

  std::string where_;
};

// The runtime drops it at the end of the job, if it still waits: its argument keeps what it waits for, and that has a share of the engine.
struct Callback final : runtime::Work, runtime::DetachedTask {
  Callback(Engine& engine_in, Ref function_in, Ref argument_in, std::string where_in)
      : runtime::Work(&Callback::turn),
        engine(engine_in),
        callback(std::move(function_in)),
        argument(std::move(argument_in)),
        context(copy_of_context()),
        where(std::move(where_in)) {
    engine_in.runtime().list_pending(this);
  }

  void finished() noexcept override {}
  void abandon() noexcept override {
    forget_wait(argument.get(), this);  // an operation may end later than the job
    delete this;
  }

  static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
    std::unique_ptr<Callback> work(static_cast<Callback*>(self));
    if (action != runtime::WorkAction::kRun) return;
    work->engine->step_made();
    const WhileRunning running(work->chare);
    Ref result;
    {
      const InContext entered(work->context.get());
      result = Ref::steal(PyObject_CallOneArg(work->callback.get(), work->argument.get()));
    }
    end_if_forked();
    if (!result) {
      end_by_exception(*work->engine, work->where);
    } else if (is_coroutine(result.get())) {
      spawn(*work->engine, std::move(result), work->where, std::move(work->context));
    }
  }

  EngineRef engine;
  Ref callback;
  Ref argument;
  Ref context;
  RunningChare chare = running_chare;
  std::string where;
};

}  // namespace

void spawn(Engine& engine, Ref coroutine, std::string where, Ref context) {
  (new Spawned(engine, std::move(coroutine), std::move(where), std::move(context)))->start();
}

void expect_callback(PyObject* callback) {
  if (PyCallable_Check(callback) != 0) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("then() takes a function of one argument, not a {}", type_name_of(callback)));
}

runtime::Work* make_callback(Engine& engine, Ref callback, Ref argument, std::string where) {
  expect_callback(callback.get());
  return new Callback(engine, std::move(callback), std::move(argument), std::move(where));
}

void post_to_pe(Engine& engine, Ref function, Ref arguments, const char* where) {
  engine.runtime().post_from_any_thread([&engine, function = std::move(function),
                                         arguments = std::move(arguments), context = copy_of_context(),
                                         where] {
    Ref result;
    {
      const InContext entered(context.get());
      result = Ref::steal(PyObject_CallObject(function.get(), arguments.get()));
    }
    end_if_forked();
    if (!result) end_by_exception(engine, where);
  });
}

void post_method_to_pe(Engine& engine, PyObject* self, const char* method, PyObject* argument,
                       const char* where) {
  post_to_pe(engine, checked(PyObject_GetAttrString(self, method)), checked(PyTuple_Pack(1, argument)),
             where);
}

namespace {

constexpr const char* kCapsule = "weft._core coroutine";
using InterruptionsShare = std::shared_ptr<Coroutine::Interruptions>;

// For the package: the coroutine that the scheduler steps, for _interrupt() and _take_back().
PyObject* current_coroutine(PyObject*, PyObject* use) {
  return guarded([use]() -> PyObject* {
    if (!is_stepped_by_scheduler()) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("{} is for coroutines that Weft's scheduler runs, and was used in an event loop "
                       "of asyncio or on another thread than the PE's; use asyncio's own function there",
                       text_of(use)));
    }
    auto share = std::make_unique<InterruptionsShare>(SteppedByScheduler::innermost()->interruptions());
    Ref capsule = checked(PyCapsule_New(share.get(), kCapsule, [](PyObject* object) {
      delete static_cast<InterruptionsShare*>(PyCapsule_GetPointer(object, kCapsule));
    }));
    static_cast<void>(share.release());  // the capsule's
    return capsule.release();
  });
}

// Calls `function` with the coroutine of the first argument, if it has not ended, and the exception that is the second.
PyObject* with_coroutine(const char* name, PyObject* const* values, Py_ssize_t count,
                         void (Coroutine::*function)(const Ref&)) {
  return guarded([&]() -> PyObject* {
    const Arguments arguments(name, {"coroutine", "exception"}, 2, values, count, nullptr);
    const auto* const share = static_cast<InterruptionsShare*>(PyCapsule_GetPointer(arguments[0], kCapsule));
    if (share == nullptr) throw PythonError();
    Engine::refuse_other_threads();
    if (Coroutine* const coroutine = (*share)->coroutine) (coroutine->*function)(Ref::borrow(arguments[1]));
    Py_RETURN_NONE;
  });
}

PyObject* interrupt(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return with_coroutine("_interrupt", values, count, &Coroutine::interrupt);
}

PyObject* take_back(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return with_coroutine("_take_back", values, count, &Coroutine::take_back);
}

PyMethodDef functions[] = {
    {"_current_coroutine", &current_coroutine, METH_O, nullptr},
    {"_interrupt", as_method(&interrupt), METH_FASTCALL, nullptr},
    {"_take_back", as_method(&take_back), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void init_coroutine(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
