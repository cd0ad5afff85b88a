#include "await/other_threads.h"

#include <memory>
#include <utility>

#include "weft/base/error.h"

#include "await/awaitable.h"
#include "await/context.h"
#include "base/format.h"
#include "engine/ending.h"
#include "support/errors.h"

namespace weft::python {

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
      if (!wait_for(self->awaited.get(), self.get())) {
        throw base::Error(base::StatusCode::kInvalidArgument,
                          base::format("weft.as_asyncio and weft.as_concurrent take futures and operations, "
                                       "such as proxy.method.call(), not a {}",
                                       type_name_of(self->awaited.get())));
      }
    } catch (...) {  // a future of another PE
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

void init_other_threads(PyObject* module) { add_functions(module, functions); }

PyObject* follow_in_event_loop(PyObject* awaited) {
  return guarded([awaited] {
    const Ref follow = import_from("weft._await.asyncio_edge", "follow");
    return PyObject_CallOneArg(follow.get(), awaited);
  });
}

}  // namespace weft::python
