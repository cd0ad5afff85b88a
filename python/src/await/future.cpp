#include "await/future.h"

#include <new>
#include <utility>

#include "await/awaitable.h"
#include "await/coroutine.h"
#include "await/setter.h"
#include "base/format.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct FutureObject {
  PyObject_HEAD PyFutureState* state;
};

PyTypeObject* future_type = nullptr;

PyFutureState* state_of(PyObject* self) { return reinterpret_cast<FutureObject*>(self)->state; }

std::uint64_t number_of_values(PyObject* number) {
  const Ref index = checked(PyNumber_Index(number));
  int overflow = 0;
  const long long count = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow == 0 && count >= 0) return static_cast<std::uint64_t>(count);
  throw base::Error(
      base::StatusCode::kOutOfRange,
      base::format("weft.Future(num_values): the number of values is from 0 to 2**63 - 1, and {} "
                   "is not",
                   readable(number)));
}

PyObject* make(PyTypeObject*, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"num_values", nullptr};
    PyObject* number = Py_None;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:Future", const_cast<char**>(names), &number) ==
        0) {
      throw PythonError();
    }
    const bool collects = number != Py_None;
    const std::uint64_t count = collects ? number_of_values(number) : 0;
    auto* state = new PyFutureState(Engine::current_on_any_thread());
    Ref object = make_future_object(state);
    if (collects) state->collect(count);
    return object.release();
  });
}

// weft.Future() without arguments, as most calls are, parses none.
PyObject* make_by_vectorcall(PyObject*, PyObject* const* values, std::size_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    const Py_ssize_t num_positional = PyVectorcall_NARGS(count);
    if (num_positional == 0 && names == nullptr) [[likely]]
      return make_future_object(new PyFutureState(Engine::current_on_any_thread())).release();
    const Ref arguments = checked(PyTuple_New(num_positional));
    for (Py_ssize_t i = 0; i < num_positional; ++i)
      PyTuple_SET_ITEM(arguments.get(), i, Py_NewRef(values[i]));
    const Ref keywords = checked(PyDict_New());
    for (Py_ssize_t k = 0; names != nullptr && k < PyTuple_GET_SIZE(names); ++k)
      checked(PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, k), values[num_positional + k]));
    return make(future_type, arguments.get(), keywords.get());
  });
}

void deallocate(PyObject* self) {
  if (PyFutureState* state = state_of(self)) {
    state->object_gone();
    if (state->is_mirror() && !state->engine().is_on_this_thread()) {  // its end may send a message
      Engine::drop_on_pe_thread({state, [](PyFutureState* one) { one->release(); }});
    } else {
      state->release();
    }
  }
  free_object(self);
}

PySendResult poll(PyObject* self, PyObject** result) {
  PyFutureState* state = state_of(self);
  if (!state->is_ready()) return PYGEN_NEXT;
  *result = guarded([state] { return state->result(); });
  return *result == nullptr ? PYGEN_ERROR : PYGEN_RETURN;
}

constexpr const char* kSetElsewhere = "a future that another thread has set";

// The value is copied here, so that the thread may change it at once.
PyObject* set_from_other_thread(PyObject* self, PyObject* value) {
  PyFutureState& state = *state_of(self);
  state.engine().expect_open_on_any_thread();
  state.expect_room();
  post_method_to_pe(state.engine(), self, "set", state.copy_for_set(value).get(), kSetElsewhere);
  Py_RETURN_NONE;
}

// A copy that was sent as an argument: it can be set, and not be awaited.
bool is_of_other_pe(const PyFutureState& state) { return state.remote().id != 0 && !state.is_mirror(); }

PyObject* set(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Future.set", {"value"}, 0, values, count, nullptr);
    PyFutureState& state = *state_of(self);
    PyObject* const value = arguments[0] == nullptr ? Py_None : arguments[0];
    if (!state.engine().is_open_here()) [[unlikely]]
      return set_from_other_thread(self, value);
    state.set_to_copy(value);
    Py_RETURN_NONE;
  });
}

PyObject* set_error(PyObject* self, PyObject* exception) {
  return guarded([&]() -> PyObject* {
    if (!PyExceptionInstance_Check(exception)) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("Future.set_error takes an exception, not a {}", type_name_of(exception)));
    }
    PyFutureState& state = *state_of(self);
    if (!state.engine().is_open_here()) {
      state.engine().expect_open_on_any_thread();
      state.expect_room();
      post_method_to_pe(state.engine(), self, "set_error", exception, kSetElsewhere);
    } else {
      state.set_to_error(exception);
    }
    Py_RETURN_NONE;
  });
}

PyObject* then(PyObject* self, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    PyFutureState* state = state_of(self);
    if (!state->engine().is_open_here()) {
      state->engine().expect_open_on_any_thread();
      expect_callback(callback);
      state->observe();
      post_method_to_pe(state->engine(), self, "then", callback, "then() of a future on another thread");
      Py_RETURN_NONE;
    }
    runtime::Work* work =
        make_callback(state->engine(), Ref::borrow(callback), Ref::borrow(self), "the callback of a future");
    state->observe();
    try {
      state->when_ready(work);
    } catch (...) {
      work->function(work, state->runtime(), runtime::WorkAction::kDrop);
      throw;
    }
    Py_RETURN_NONE;
  });
}

PyObject* done(PyObject* self, PyObject*) {
  return guarded([self] {
    PyFutureState* const state = state_of(self);
    if (is_of_other_pe(*state)) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("this future belongs to PE {}, and only that PE knows whether it is set; ask it "
                       "there",
                       state->remote().pe));
    }
    if (state->engine().is_open_here()) state->look();
    return PyBool_FromLong(state->is_ready() ? 1 : 0);
  });
}

// The exception's type, for the text of a future. The exception of another chare is not unpickled for that.
std::string error_name(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::RemoteError& remote) {
    return remote.type();
  } catch (...) {
    return "weft.Error";
  }
}

std::string state_text(const PyFutureState& state) {
  if (is_of_other_pe(state)) return base::format("of PE {}", state.remote().pe);
  if (!state.is_ready()) return "pending";
  return state.error() ? base::format("failed with {}", error_name(state.error())) : "ready";
}

PyObject* representation(PyObject* self) {
  return guarded([self] {
    const PyFutureState& state = *state_of(self);
    const std::string subject = state.subject() == nullptr || state.engine().is_closed()
                                    ? std::string()
                                    : base::format(" of {}", readable(state.subject()));
    return make_text(base::format("<weft.Future{}: {}>", subject, state_text(state))).release();
  });
}

int truth(PyObject* self) {
  return guarded_status([self] {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("{} is neither true nor false: `await` it for its value, or ask its done()",
                     readable(self)));
  });
}

PyObject* result(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!state_of(self)->is_ready()) {
      throw base::Error(base::StatusCode::kInvalidArgument, "this future is not set yet; await it");
    }
    return state_of(self)->result();
  });
}

void wait(PyObject* future, runtime::Work* work) {
  PyFutureState* const state = state_of(future);
  if (state->is_ready()) {
    state->runtime().post_for_next_turn(work);
  } else {
    state->when_ready(work);
  }
}

bool forget(PyObject* future, runtime::Work* work) {
  PyFutureState* const state = state_of(future);
  if (state->is_ready()) return false;
  state->forget(work);
  state
      ->observe();  // a wait that is given up counts as a look at the result, as one of weft.wait that has timed out
  return true;
}

PartyOfSubject party_of_subject = nullptr;

void describe(PyObject* future, runtime::Wait& wait, runtime::WaitList&) {
  PyFutureState& state = *state_of(future);
  if (state.is_ready()) return;
  if (state.subject() != nullptr) {
    wait.what = readable(state.subject());
    runtime::NamedParty party;
    if (party_of_subject == nullptr || !party_of_subject(state.subject(), party)) return;
    wait.what = "the result of " + wait.what;
    wait.on.push_back(party);
    return;
  }
  for (const auto& installed : state.runtime().models()) {
    if (installed.model->describe_future(state, wait)) return;
  }
  wait.guess = state.collects() ? "a future of several values that was not set so often"
                                : "a future that nothing has set";
}

// Makes the future that a call returns, for calls that are written in Python.
PyObject* call_future_function(PyObject*, PyObject* where) {
  return guarded([&]() -> PyObject* {
    std::string text(text_of(where));
    auto* state = new PyFutureState(Engine::current());
    Ref future = make_future_object(state);
    state->end_job_if_unobserved(std::move(text));
    return future.release();
  });
}

// For the package: a future of this PE takes the object itself, which need not be one that travels.
PyObject* hand_over_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_hand_over", {"future", "value"}, 2, values, count, nullptr);
    if (!is_future(arguments[0]) || future_state(arguments[0])->remote().id != 0) {
      throw base::Error(base::StatusCode::kInvalidArgument, "_hand_over takes a future of this PE");
    }
    future_state(arguments[0])->engine().expect_open();
    future_state(arguments[0])->set(Ref::borrow(arguments[1]));
    Py_RETURN_NONE;
  });
}

// Copies of a future are the same future.
PyObject* itself(PyObject* self, PyObject*) { return Py_NewRef(self); }

PyMethodDef methods[] = {
    {"set", as_method(&set), METH_FASTCALL, R"(set($self, value=None, /)
--

Sets the value, or one of several; does not block. Works on any PE that has a copy of the future.

The future gets the value that the object has now, as the argument of an entry method would be, whether it belongs to this PE
or to another. On this PE device memory, and what weft.nocopy wraps, is handed over itself.

Args:
    value: any object that travels.

Raises:
    weft.Error: the future has all its values already, and the text names what has set it; the value cannot travel; or the job
        has ended. If the future belongs to another PE, a set too many ends the job.)"},
    {"set_error", &set_error, METH_O, R"(set_error($self, exception, /)
--

Sets an error; does not block. Awaiting the future then raises a weft.RemoteError that is of the exception's type too.

Args:
    exception: an exception, not a class.

Raises:
    weft.Error: not an exception, the future is set already, or the job has ended.)"},
    {"then", &then, METH_O, R"(then($self, callback, /)
--

Calls ``callback(future)`` from the scheduler when the future is set, or soon if it is set already.

``future.result()`` in it gives the value. If it returns a coroutine, that is run. An exception that it raises ends
the job; SystemExit ends it with its code.

Args:
    callback: a function of one argument. A future may have any number of callbacks and waiters.

Raises:
    weft.Error: not a function, the future belongs to another PE and has not moved with a chare, or the job has
        ended.)"},
    {"done", &done, METH_NOARGS, R"(done($self, /)
--

Whether the future is set; does not wait.

Raises:
    weft.Error: the future belongs to another PE, and has not moved here with a chare.)"},
    {"result", &result, METH_NOARGS, R"(result($self, /)
--

The value; does not wait.

Raises:
    weft.RemoteError: the future was set to an error.
    weft.Error: the future is not set yet.)"},
    {"__copy__", &itself, METH_NOARGS, nullptr},
    {"__deepcopy__", &itself, METH_O, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {},
};

PyMethodDef functions[] = {
    {"_call_future", &call_future_function, METH_O, nullptr},
    {"_hand_over", as_method(&hand_over_function), METH_FASTCALL, nullptr},
    {},
};

using Slots = AwaitableSlots<&poll, ReadyAwaits::kCounted, Elsewhere::kFollowed>;
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_am_await, reinterpret_cast<void*>(&Slots::itself)},
    {Py_am_send, reinterpret_cast<void*>(&Slots::send)},
    {Py_tp_iter, reinterpret_cast<void*>(&Slots::itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(&Slots::next)},
    {Py_tp_repr, reinterpret_cast<void*>(&representation)},
    {Py_nb_bool, reinterpret_cast<void*>(&truth)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(Future(num_values=None)
--

A value that is set once, on any PE that has a copy of the future.

It belongs to the PE that makes it, and is awaited, or given a callback, there. A copy that was sent as an argument
can be set where it arrives. A copy in the state of a chare that moves can be awaited on the chare's new PE.

``weft.Future(n)`` is set n times, by any chares, and is then ready: its result is the list of the n values in the
order in which they arrived. The first error that is set is the result at once; what is set later is dropped.

Any thread may make, set and read futures. Coroutines in event loops of other threads await them, too; threads without a
loop use weft.as_concurrent.

Args:
    num_values: None for a single value, which is the result; or the number of values, 0 or more, whose list is.

Raises:
    weft.Error: no job is running, or a negative number.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Future", sizeof(FutureObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void init_future(PyObject* module) {
  init_setter();
  future_type = add_type(module, spec);
#ifndef Py_LIMITED_API  // the stable ABI calls the slots tp_new and tp_init, which takes longer
  future_type->tp_vectorcall = &make_by_vectorcall;
#endif
  add_awaitable(future_type, &wait, &forget, &describe);
  add_functions(module, functions);
}

Ref make_future_object(PyFutureState* state) {
  state->acquire();
  PyObject* object = PyType_GenericAlloc(future_type, 0);
  if (object == nullptr) {
    state->release();
    throw PythonError();
  }
  reinterpret_cast<FutureObject*>(object)->state = state;
  state->object_made();
  return Ref::steal(object);
}

void set_party_of_subject(PartyOfSubject function) { party_of_subject = function; }

bool is_future(PyObject* object) { return Py_TYPE(object) == future_type; }

PyFutureState* future_state(PyObject* object) { return state_of(object); }

Ref wrap_future(Engine& engine, const runtime::Future<>& future, Ref value) {
  auto* state = new PyFutureState(engine);
  Ref object = make_future_object(state);
  future.then([object, value = std::move(value)](const runtime::Future<>& ready) {
    if (ready.state()->error()) {
      state_of(object.get())->set_error(ready.state()->error());
    } else {
      state_of(object.get())->set(value);
    }
  });
  return object;
}

}  // namespace weft::python
