#include "await/awaitable.h"

#include <array>
#include <cstddef>
#include <exception>

#include "weft/base/error.h"

#include "base/format.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct AwaitableType {
  PyTypeObject* type = nullptr;
  WaitFunction wait = nullptr;
  ForgetFunction forget = nullptr;
  DescribeFunction describe = nullptr;
};
std::array<AwaitableType, 8> awaitables;
std::size_t num_awaitables = 0;

// Null if another thread, or something else than the scheduler, steps the coroutine.
Engine* stepping_engine() {
  if (SteppedByScheduler::innermost() == nullptr) return nullptr;
  // Another thread may have the interpreter while the PE's thread is in a step.
  Engine* const engine = Engine::running();
  return engine != nullptr && engine->is_on_this_thread() ? engine : nullptr;
}

}  // namespace

bool runs_an_asyncio_loop() {
  PyObject* const asyncio = PyDict_GetItemString(PyImport_GetModuleDict(), "asyncio");  // borrowed
  if (asyncio == nullptr) return false;
  const Ref loop = Ref::steal(PyObject_CallMethod(asyncio, "_get_running_loop", nullptr));
  if (!loop) PyErr_Clear();
  return loop.get() != Py_None;
}

PySendResult send_on_other_thread(PyObject* self, PollFunction poll, PyObject** result) {
  if (poll == nullptr) {
    set_python_error(std::make_exception_ptr(
        base::Error(base::StatusCode::kInvalidArgument,
                    base::format("a {} was awaited on another thread than the PE's; such threads can await "
                                 "calls, futures and operations, and hand other work to the PE with "
                                 "weft.post_from_any_thread(function)",
                                 type_name_of(self)))));
    return PYGEN_ERROR;
  }
  // It is not counted: the event loop decides on turns.
  const PySendResult outcome = poll(self, result);
  if (outcome != PYGEN_NEXT) return outcome;
  *result = guarded([self] {
    static constinit Imported follow("weft._await.asyncio_edge", "follow");
    return PyObject_CallOneArg(follow.get(), self);
  });
  return *result == nullptr ? PYGEN_ERROR : PYGEN_NEXT;
}

bool must_take_turn() {
  Engine* const engine = stepping_engine();
  return engine != nullptr && engine->runtime().spend_ready_await() && !runs_an_asyncio_loop();
}

bool is_stepped_by_scheduler() { return stepping_engine() != nullptr && !runs_an_asyncio_loop(); }

void add_awaitable(PyTypeObject* type, WaitFunction wait, ForgetFunction forget, DescribeFunction describe) {
  if (num_awaitables == awaitables.size()) {
    throw base::Error(base::StatusCode::kInternal, "the table of awaitables is full; enlarge it");
  }
  awaitables[num_awaitables++] = {type, wait, forget, describe};
}

bool forget_wait(PyObject* yielded, runtime::Work* work) {
  for (std::size_t i = 0; i < num_awaitables; ++i) {
    if (awaitables[i].type == Py_TYPE(yielded))
      return awaitables[i].forget != nullptr && awaitables[i].forget(yielded, work);
  }
  return false;
}

void describe_wait(PyObject* awaitable, runtime::Wait& wait, runtime::WaitList& waits) {
  for (std::size_t i = 0; i < num_awaitables; ++i) {
    if (awaitables[i].type == Py_TYPE(awaitable) && awaitables[i].describe != nullptr)
      return awaitables[i].describe(awaitable, wait, waits);
  }
}

bool wait_for(PyObject* yielded, runtime::Work* work) {
  for (std::size_t i = 0; i < num_awaitables; ++i) {
    if (awaitables[i].type != Py_TYPE(yielded)) continue;
    awaitables[i].wait(yielded, work);
    return true;
  }
  return false;
}

}  // namespace weft::python
