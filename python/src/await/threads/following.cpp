#include "await/threads/following.h"

#include <memory>
#include <utility>

#include "weft/base/error.h"

#include "await/awaitable.h"
#include "await/future.h"
#include "base/format.h"
#include "engine/ending.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Tells another thread when `awaited`, a future or an operation, is ready: put(following, value, exception) on the PE's thread.
struct Following final : runtime::Work {
  Following(Engine& engine_in, PyObject* awaited_in, PyObject* put_in, PyObject* following_in)
      : runtime::Work(&Following::turn),
        engine(engine_in),
        awaited(Ref::borrow(awaited_in)),
        put(Ref::borrow(put_in)),
        following(Ref::borrow(following_in)) {}

  // Takes `self`.
  static void begin(std::unique_ptr<Following> self) {
    try {
      // A future of a job that has ended is never ready. Operations end with their job.
      if (is_future(self->awaited.get())) future_state(self->awaited.get())->engine().expect_open();
      if (!wait_for(self->awaited.get(), self.get())) {
        throw base::Error(base::StatusCode::kInvalidArgument,
                          base::format("weft.as_asyncio and weft.as_concurrent take futures and operations, "
                                       "such as proxy.method.call(), not a {}",
                                       type_name_of(self->awaited.get())));
      }
    } catch (...) {  // a future of another PE, or of another job
      set_python_error();
      return self->tell(Ref());
    }
    static_cast<void>(self.release());  // its turn deletes it
  }

  static void turn(runtime::Work* work, runtime::Runtime&, runtime::WorkAction action) {
    const std::unique_ptr<Following> self(static_cast<Following*>(work));
    if (action != runtime::WorkAction::kRun) return;  // the end of the job tells all that follow
    self->tell(Ref::steal(PyObject_CallMethod(self->awaited.get(), "result", nullptr)));
  }

  // `value`: null if a Python error is set.
  void tell(Ref value) {
    const Ref error = value ? Ref::borrow(Py_None) : PythonError::take();
    const Ref told = Ref::steal(PyObject_CallFunctionObjArgs(
        put.get(), following.get(), value ? value.get() : Py_None, error.get(), nullptr));
    if (!told) end_by_exception(*engine, "the wait of another thread");
  }

  EngineRef engine;
  Ref awaited;
  Ref put;
  Ref following;
};

PyObject* follow(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_follow", {"awaited", "put", "following"}, 3, values, count, nullptr);
    Engine& engine = Engine::current_on_any_thread();
    // Until it begins it belongs to the posted function, which is copied and may be dropped.
    const auto waiting = std::make_shared<std::unique_ptr<Following>>(
        std::make_unique<Following>(engine, arguments[0], arguments[1], arguments[2]));
    engine.runtime().post_from_any_thread([waiting] { Following::begin(std::move(*waiting)); });
    Py_RETURN_NONE;
  });
}

PyMethodDef functions[] = {
    {"_follow", as_method(&follow), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void init_following(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
