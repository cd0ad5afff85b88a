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

bool Coroutine::run_to_await() {
  const SteppedByScheduler stepped;
  const WhileRunning running(running_);
  PyObject* result = nullptr;
  PySendResult outcome = PYGEN_NEXT;
  {
    const InContext entered(context_.get());
    outcome = PyIter_Send(coroutine_.get(), Py_None, &result);
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
    raised();
  }
  return true;
}

// Returns false with the error indicator set when it cannot wait for that.
bool Coroutine::suspend(Ref yielded) {
  try {
    if (wait_for(yielded.get(), this)) return true;
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("an entry method awaited a {}, which Weft's scheduler cannot wait for; await futures, "
                     "channel operations and calls of weft, and wrap asyncio's awaitables in "
                     "weft.asyncio_future(...)",
                     type_name_of(yielded.get())));
  } catch (...) {
    set_python_error();
    return false;
  }
}

// Its blocks that are left, such as `with decimal.localcontext()`, reset what they have set in its own context.
void Coroutine::abandon() noexcept {
  {
    const InContext entered(context_.get());
    coroutine_ = Ref();
  }
  destroy();
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

struct Callback final : runtime::Work {
  Callback(Engine& engine_in, Ref function_in, Ref argument_in, std::string where_in)
      : runtime::Work(&Callback::turn),
        engine(engine_in),
        callback(std::move(function_in)),
        argument(std::move(argument_in)),
        context(copy_of_context()),
        where(std::move(where_in)) {}

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

runtime::Work* make_callback(Engine& engine, Ref callback, Ref argument, std::string where) {
  if (PyCallable_Check(callback.get()) == 0) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("then() takes a function of one argument, not a {}", type_name_of(callback.get())));
  }
  return new Callback(engine, std::move(callback), std::move(argument), std::move(where));
}

}  // namespace weft::python
