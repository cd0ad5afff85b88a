#include "await/operation.h"

#include <memory>
#include <new>
#include <vector>

#include "await/awaitable.h"
#include "await/coroutine.h"
#include "codec/forms.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Several waiters of one operation: the state has room for one. Deletes itself when they have had their turn.
struct SharedWaiter final : runtime::Work {
  explicit SharedWaiter(runtime::Work* first) : runtime::Work(&SharedWaiter::turn), waiters{first} {}
  static void turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
    const std::unique_ptr<SharedWaiter> shared(static_cast<SharedWaiter*>(self));
    for (runtime::Work* const waiter : shared->waiters) {
      const bool has_ended = runtime.stopped();  // by the waiter before
      waiter->function(waiter, runtime, has_ended ? runtime::WorkAction::kDrop : action);
    }
  }
  std::vector<runtime::Work*> waiters;
};

struct OperationObject {
  PyObject_HEAD EngineRef engine;  // none if `state` is null
  runtime::OperationState* state;  // null: it was over when it was made, and has succeeded
  Ref keeper;
  Ref result;             // or what `convert` needs
  ConvertResult convert;  // null: the result is there
  runtime::Work* waiter;  // of the state; null for none
  SharedWaiter* shared;   // the waiter if there are several
};

PyTypeObject* operation_type = nullptr;

PyObject* finished = nullptr;  // with the result None

OperationObject* as_operation(PyObject* object) { return reinterpret_cast<OperationObject*>(object); }

bool is_over(const OperationObject* operation) {
  return operation->state == nullptr || operation->state->is_done();
}

// Keeps the memory of a dropped operation until the operation is complete. Takes the place of the operation's
// waiter, if there is one, and passes its turn on: a coroutine that awaits the operation drops it when it is closed,
// and the scheduler still continues the coroutine around it.
struct Orphan final : runtime::Work {
  Orphan(runtime::OperationState* state_in, Ref keeper_in, runtime::Work* waiter_in)
      : runtime::Work(&Orphan::turn), state(state_in), keeper(std::move(keeper_in)), waiter(waiter_in) {}
  static void turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
    std::unique_ptr<Orphan> orphan(static_cast<Orphan*>(self));
    runtime::Work* const waiter = orphan->waiter;
    orphan->state->drop_handle();
    orphan.reset();
    if (waiter != nullptr) waiter->function(waiter, runtime, action);
  }
  runtime::OperationState* state;
  Ref keeper;
  runtime::Work* waiter;
};

void deallocate(PyObject* self) {
  OperationObject* operation = as_operation(self);
  if (operation->state == nullptr) {
    // It holds nothing but its result.
  } else if (Engine::in_forked_child()) {
    static_cast<void>(operation->keeper.release());  // the operation is the parent's and may be in flight
  } else if (operation->keeper && !operation->state->is_done()) {
    operation->state->forget_waiter();
    operation->state->set_waiter(
        new Orphan(operation->state, std::move(operation->keeper), operation->waiter));
  } else {
    operation->state->drop_handle();
  }
  operation->~OperationObject();
  free_object(self);
}

PyObject* result_of(OperationObject* operation) {
  if (operation->state == nullptr) return Py_NewRef(operation->result.get());
  operation->state->observe();
  const base::Status& status = operation->state->status();
  if (status.failed()) {
    return guarded([&]() -> PyObject* { base::throw_status(status); });
  }
  if (operation->convert == nullptr) return Py_NewRef(operation->result.get());
  return guarded([&]() -> PyObject* {
    operation->result = operation->convert(operation->state, operation->result);
    operation->convert = nullptr;
    return Py_NewRef(operation->result.get());
  });
}

PySendResult poll(PyObject* self, PyObject** result) {
  OperationObject* operation = as_operation(self);
  if (!is_over(operation)) return PYGEN_NEXT;
  *result = result_of(operation);
  return *result == nullptr ? PYGEN_ERROR : PYGEN_RETURN;
}

// REQUIRES: the operation is not done.
void add_waiter(OperationObject* operation, runtime::Work* work) {
  runtime::OperationState* const state = operation->state;
  if (operation->shared != nullptr) return operation->shared->waiters.push_back(work);
  if (operation->waiter != nullptr) {
    operation->shared = new SharedWaiter(operation->waiter);
    operation->shared->waiters.push_back(work);
    state->forget_waiter();
    work = operation->shared;
  }
  operation->waiter = work;
  state->set_waiter(work);
}

void wait(PyObject* self, runtime::Work* work) {
  OperationObject* operation = as_operation(self);
  if (is_over(operation)) {  // for a turn only: others may have waited for it before
    Engine& engine = operation->state == nullptr ? Engine::current() : *operation->engine;
    engine.runtime().post_for_next_turn(work);
    return;
  }
  add_waiter(operation, work);
}

bool forget(PyObject* self, runtime::Work* work) {
  OperationObject* operation = as_operation(self);
  if (is_over(operation)) return false;
  if (operation->shared != nullptr) {
    std::erase(operation->shared->waiters, work);
  } else if (operation->waiter == work) {
    operation->state->forget_waiter();
    operation->waiter = nullptr;
  }
  return true;
}

void describe(PyObject* self, runtime::Wait& wait, runtime::WaitList& waits) {
  const OperationObject* const operation = as_operation(self);
  if (is_over(operation)) return;
  for (const auto& installed : operation->engine->runtime().models()) {
    if (installed.model->describe_operation(*operation->state, wait, waits)) return;
  }
  wait.guess = "an operation that is not over: a send in place, a copy or a collective";
}

PyObject* then(PyObject* self, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    OperationObject* operation = as_operation(self);
    Engine& engine = operation->state == nullptr ? Engine::current_on_any_thread() : *operation->engine;
    if (!engine.is_open_here()) {
      engine.expect_open_on_any_thread();
      expect_callback(callback);
      post_method_to_pe(engine, self, "then", callback, "then() of an operation on another thread");
      Py_RETURN_NONE;
    }
    runtime::Work* work =
        make_callback(engine, Ref::borrow(callback), Ref::borrow(self), "the callback of an operation");
    if (is_over(operation)) {
      engine.runtime().post(work);
    } else {
      add_waiter(operation, work);
    }
    Py_RETURN_NONE;
  });
}

PyObject* done(PyObject* self, PyObject*) {
  return guarded([self] { return PyBool_FromLong(is_over(as_operation(self)) ? 1 : 0); });
}

PyObject* result(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!is_over(as_operation(self))) {
      throw base::Error(base::StatusCode::kInvalidArgument, "this operation is not over yet; await it");
    }
    return result_of(as_operation(self));
  });
}

PyMethodDef methods[] = {
    {"then", &then, METH_O, R"(then($self, callback, /)
--

Calls ``callback(operation)`` from the scheduler when the operation is complete, or soon if it is already.

``operation.result()`` in it gives the buffer or raises the error. An exception that it raises ends the job.

Args:
    callback: a function of one argument. An operation may have any number of callbacks and waiters.

Raises:
    weft.Error: not a function, or the job has ended.)"},
    {"done", &done, METH_NOARGS, R"(done($self, /)
--

Whether the operation is complete, with or without an error.)"},
    {"result", &result, METH_NOARGS, R"(result($self, /)
--

What awaiting the operation gives; does not wait: the buffer of a receive or a copy, None of a send.

Raises:
    weft.Error: the operation is not complete, or it failed.)"},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {},
};

using Slots = AwaitableSlots<&poll, ReadyAwaits::kCounted, Elsewhere::kFollowed>;
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_am_await, reinterpret_cast<void*>(&Slots::itself)},
    {Py_am_send, reinterpret_cast<void*>(&Slots::send)},
    {Py_tp_iter, reinterpret_cast<void*>(&Slots::itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(&Slots::next)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(A send, a receive, a copy or a wait for a stream.

Await it, give it a callback with then(), or drop it. It may be awaited again, and by several coroutines. A dropped
operation continues, keeps its buffers alive until it is complete, and ends the job if it fails.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Operation", sizeof(OperationObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

Ref make_operation_object(Engine& engine, runtime::OperationState* state, Ref keeper, Ref result,
                          ConvertResult convert) {
  auto* object = reinterpret_cast<OperationObject*>(PyType_GenericAlloc(operation_type, 0));
  if (object == nullptr) {
    state->drop_handle();
    throw PythonError();
  }
  new (&object->engine) EngineRef(engine);
  object->state = state;
  new (&object->keeper) Ref(std::move(keeper));
  new (&object->result) Ref(std::move(result));
  object->convert = convert;
  object->waiter = nullptr;
  object->shared = nullptr;
  return Ref::steal(reinterpret_cast<PyObject*>(object));
}

Ref make_finished_operation(Ref result) {
  Ref object = checked(PyType_GenericAlloc(operation_type, 0));  // zeros: no engine, no state, no keeper
  new (&as_operation(object.get())->result) Ref(std::move(result));
  return object;
}

Ref finished_operation() { return Ref::borrow(finished); }

void init_operation(PyObject* module) {
  operation_type = add_type(module, spec);
  add_awaitable(operation_type, &wait, &forget, &describe);
  // It does not travel; a future of this PE may get it: operation.then(future.set).
  add_encoding(operation_type, [](Encoder&, PyObject*) { return false; });
  finished = make_finished_operation(Ref::borrow(Py_None)).release();
}

}  // namespace weft::python
