#include "await/future.h"

#include <limits>
#include <new>
#include <utility>

#include "weft/chare/outcome.h"

#include "await/awaitable.h"
#include "await/coroutine.h"
#include "base/format.h"
#include "codec/attach.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "codec/no_copy.h"
#include "runtime/handlers.h"
#include "support/errors.h"

namespace weft::python {

// --- The state
// --------------------------------------------------------------------------------------------------

PyFutureState::~PyFutureState() {
  if (!error() || observed_ || where_.empty() || engine_->is_closed() || runtime().exiting()) return;
  runtime().fail_unawaited(error(), where_);
}

Ref PyFutureState::result() {
  observed_ = true;
  if (error()) {
    set_python_error(error());
    throw PythonError();
  }
  return value_;
}

void PyFutureState::set(Ref value) {
  if (remote_.id == 0) {
    store(is_no_copy(value.get()) ? Ref::borrow(no_copy_array(value.get())) : std::move(value));
    return;
  }
  Encoder encoder(Beside::kLarge);
  encoder.value(value.get());
  set_remote_future(runtime(), remote_, encoder);
}

void PyFutureState::store(Ref value) {
  if (!accept()) return;
  if (collects()) {
    checked(PyList_Append(value_.get(), value.get()));
    if (expects_more()) return;
  } else {
    value_ = std::move(value);
  }
  mark_ready();
}

void PyFutureState::collect(std::uint64_t count) {
  value_ = checked(PyList_New(0));
  expect_values(count);
  if (count == 0) mark_ready();
}

void PyFutureState::set_packed(Pup& p) {
  try {
    Decoder decoder(p);
    ResultForm form = bare_form_ < 0 ? decoder.number<ResultForm>() : static_cast<ResultForm>(bare_form_);
    Ref value = decode_result(decoder, form);
    store(std::move(value));
    decoder.finish(p);
  } catch (...) {  // the awaiting caller gets the error of unpacking
    set_error(caught_as_travelling_error());
  }
}

void PyFutureState::pup_value(Pup& p) {
  try {
    Decoder decoder(p);
    value_ = decoder.value();
    decoder.finish(p);
  } catch (...) {
    return end_with(caught_as_travelling_error());
  }
  mark_ready();
}

void PyFutureState::arrive(Ref value) {
  if (!waits_for_copy()) return;
  value_ = std::move(value);
  mark_ready();
}

void PyFutureState::arrive_error(std::exception_ptr error) {
  if (waits_for_copy()) end_with(std::move(error));
}

namespace {

// `header` and the encoded value.
template <class... Header>
void send_encoded(runtime::Runtime& runtime, std::uint32_t pe, runtime::HandlerId handler, Encoder& encoder,
                  const Header&... header) {
  const std::size_t header_bytes = (std::size_t{0} + ... + base::packed_size(header));
  auto message = runtime::Message::create(runtime, handler, header_bytes + encoder.size_bytes());
  Pup p = Pup::packer(message->payload(), header_bytes);
  ((p | header), ...);
  encoder.copy_to(message->payload() + header_bytes);
  attach_all(encoder, *message);
  runtime::OperationState* const sending = chare::report_sending_in_place(*message);
  runtime.send(static_cast<int>(pe), std::move(message));
  if (sending != nullptr) sending->drop_handle();
}

}  // namespace

void PyFutureState::send_outcome(std::uint32_t to_pe, runtime::FutureAddress future) {
  observed_ = true;  // the duty is the copy's now
  if (error()) return FutureState::send_outcome(to_pe, future);
  try {
    Encoder encoder(Beside::kLarge);
    encoder.value(value_.get());
    const bool failed = false;
    send_encoded(runtime(), to_pe, runtime::kFutureCopyHandler, encoder, future.pe, future.id, failed);
  } catch (...) {
    std::rethrow_exception(caught_as_travelling_error());
  }
}

void set_remote_future(runtime::Runtime& runtime, runtime::FutureAddress future, Encoder& encoder) {
  send_encoded(runtime, future.pe, runtime::kFutureSetHandler, encoder,
               runtime::FutureSetHeader{future.id, 0}, ResultForm::kValue);
}

// --- The object
// -------------------------------------------------------------------------------------------------

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

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"num_values", nullptr};
    PyObject* number = Py_None;
    if (PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:Future", const_cast<char**>(names), &number) ==
        0) {
      throw PythonError();
    }
    const bool collects = number != Py_None;
    const std::uint64_t count = collects ? number_of_values(number) : 0;
    Engine& engine = Engine::current();
    Ref object = checked(type->tp_alloc(type, 0));
    auto* state = new PyFutureState(engine);
    state->acquire();
    reinterpret_cast<FutureObject*>(object.get())->state = state;
    if (collects) state->collect(count);
    return object.release();
  });
}

void deallocate(PyObject* self) {
  if (PyFutureState* state = state_of(self)) {
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
  *result = guarded([state] { return state->result().release(); });
  return *result == nullptr ? PYGEN_ERROR : PYGEN_RETURN;
}

PyObject* set(PyObject* self, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("Future.set", {"value"}, 0, values, count, nullptr);
    state_of(self)->engine().expect_open();
    state_of(self)->set(Ref::borrow(arguments[0] == nullptr ? Py_None : arguments[0]));
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
    state_of(self)->engine().expect_open();
    state_of(self)->set_error(as_travelling_error(exception));
    Py_RETURN_NONE;
  });
}

PyObject* then(PyObject* self, PyObject* callback) {
  return guarded([&]() -> PyObject* {
    PyFutureState* state = state_of(self);
    state->engine().expect_open();
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

PyObject* done(PyObject* self, PyObject*) { return PyBool_FromLong(state_of(self)->is_ready()); }

PyObject* result(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!state_of(self)->is_ready()) {
      throw base::Error(base::StatusCode::kInvalidArgument, "this future is not set yet; await it");
    }
    return state_of(self)->result().release();
  });
}

using Kind = runtime::FutureHandle::Kind;

// The packed error of a future, None for none.
Ref error_bytes(const PyFutureState& state) {
  if (!state.error()) return Ref::borrow(Py_None);
  Pup sizer = Pup::sizer();
  runtime::pack_error(sizer, state.error());
  Ref bytes = checked(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(sizer.offset_bytes())));
  Pup p = Pup::packer(PyBytes_AS_STRING(bytes.get()), sizer.offset_bytes());
  runtime::pack_error(p, state.error());
  return bytes;
}

// Finds or makes the future of a handle.
Ref future_at(const runtime::FutureHandle& handle) {
  Engine& engine = Engine::current();
  if (handle.future.id == 0) {
    throw base::Error(base::StatusCode::kCorrupt, "a value arrived damaged: a future of no PE");
  }
  runtime::FutureState* const known = runtime::find_future(engine.runtime(), handle);
  auto* state = dynamic_cast<PyFutureState*>(known);
  const bool is_new = state == nullptr;
  if (is_new) state = new PyFutureState(engine);
  Ref object = make_future_object(state);
  if (is_new) runtime::bind_future(*state, handle, known != nullptr);
  if (handle.kind == Kind::kLinked) runtime::accept_link(*state, handle);
  return object;
}

// A copy that has come with the state of an element: `error` are the bytes of error_bytes().
Ref copy_at(const runtime::FutureHandle& handle, std::string_view where, PyObject* error) {
  Ref object = future_at(handle);
  PyFutureState& state = *state_of(object.get());
  if (!where.empty()) state.end_job_if_unobserved(std::string(where));
  if (error == Py_None) return object;
  char* data = nullptr;
  Py_ssize_t size_bytes = 0;
  checked(PyBytes_AsStringAndSize(error, &data, &size_bytes));
  Pup p = Pup::unpacker(data, static_cast<std::size_t>(size_bytes));
  state.arrive_error(runtime::unpack_error(p));
  return object;
}

std::string duty_for_copy(PyFutureState& state, const runtime::FutureHandle& handle) {
  std::string duty = state.duty();
  if (handle.kind == Kind::kOutcome) state.observe();
  return duty;
}

// Pickled inside another object it travels as its address. In the state of an element that moves, the value of a future that
// is set is the state of the pickled object, so that it may refer to the future itself.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyFutureState& state = *state_of(self);
    state.engine().expect_open();
    const runtime::FutureHandle handle = state.handle();
    const auto id = static_cast<unsigned long long>(handle.future.id);
    if (handle.kind == Kind::kSetter) {
      return Py_BuildValue("O(IK)", import_from("weft._core", "_future_at").get(), handle.future.pe, id);
    }
    const Ref error = error_bytes(state);
    const Ref value = handle.kind == Kind::kOutcome && !state.error()
                          ? checked(PyTuple_Pack(1, state.value()))
                          : Ref::borrow(Py_None);
    return Py_BuildValue("O(IKiIKNO)OOOO", import_from("weft._core", "_copied_future").get(),
                         handle.future.pe, id, static_cast<int>(handle.kind), handle.link.pe,
                         static_cast<unsigned long long>(handle.link.id),
                         make_text(duty_for_copy(state, handle)).release(), error.get(), value.get(), Py_None,
                         Py_None, import_from("weft._core", "_set_copied_future").get());
  });
}

template <class Number>
Number number_of(PyObject* object) {
  const unsigned long long number = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) throw PythonError();
  if (number > std::numeric_limits<Number>::max()) {
    throw base::Error(base::StatusCode::kCorrupt, "a value arrived damaged: a future of no PE");
  }
  return static_cast<Number>(number);
}

PyObject* future_at_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_future_at", {"pe", "id"}, 2, values, count, nullptr);
    const auto pe = number_of<std::uint32_t>(arguments[0]);
    return future_at({{pe, number_of<std::uint64_t>(arguments[1])}, Kind::kSetter, {}}).release();
  });
}

PyObject* copied_future_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_copied_future", {"pe", "id", "kind", "link_pe", "link", "where", "error"}, 7,
                        values, count, nullptr);
    const auto kind = number_of<std::uint8_t>(arguments[2]);
    if (kind != static_cast<int>(Kind::kLinked) && kind != static_cast<int>(Kind::kOutcome)) {
      throw base::Error(base::StatusCode::kCorrupt, "a value arrived damaged: a future of no known kind");
    }
    const runtime::FutureHandle handle{
        {number_of<std::uint32_t>(arguments[0]), number_of<std::uint64_t>(arguments[1])},
        static_cast<Kind>(kind),
        {number_of<std::uint32_t>(arguments[3]), number_of<std::uint64_t>(arguments[4])}};
    return copy_at(handle, text_of(arguments[5]), arguments[6]).release();
  });
}

PyObject* set_copied_future_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_set_copied_future", {"future", "value"}, 2, values, count, nullptr);
    PyObject* const value = arguments[1];
    if (!is_future(arguments[0]) || PyTuple_Check(value) == 0 || PyTuple_GET_SIZE(value) != 1) {
      throw base::Error(base::StatusCode::kCorrupt, "a value arrived damaged: the value of no future");
    }
    state_of(arguments[0])->arrive(Ref::borrow(PyTuple_GET_ITEM(value, 0)));
    Py_RETURN_NONE;
  });
}

bool encode(Encoder& encoder, PyObject* future) {
  PyFutureState& state = *state_of(future);
  state.engine().expect_open();
  const runtime::FutureHandle handle = state.handle();
  encoder.tag(handle.kind == Kind::kSetter ? ValueTag::kFuture : ValueTag::kCopiedFuture);
  encoder.number(handle.future.pe);
  encoder.number(handle.future.id);
  if (handle.kind == Kind::kSetter) return true;
  encoder.number(handle.kind);
  encoder.number(handle.link.pe);
  encoder.number(handle.link.id);
  encoder.value(make_text(duty_for_copy(state, handle)).get());
  encoder.value(error_bytes(state).get());
  if (handle.kind == Kind::kOutcome && !state.error()) encoder.value(state.value());
  return true;
}

runtime::FutureAddress decode_address(Decoder& decoder) {
  const auto pe = decoder.number<std::uint32_t>();
  return {pe, decoder.number<std::uint64_t>()};
}

Ref decode(Decoder& decoder) { return future_at({decode_address(decoder), Kind::kSetter, {}}); }

Ref decode_copied(Decoder& decoder) {
  runtime::FutureHandle handle{decode_address(decoder), decoder.number<Kind>(), {}};
  handle.link = decode_address(decoder);
  const Ref where = decoder.value();
  const Ref error = decoder.value();
  if ((handle.kind != Kind::kLinked && handle.kind != Kind::kOutcome) || PyUnicode_Check(where.get()) == 0 ||
      (error.get() != Py_None && PyBytes_Check(error.get()) == 0)) {
    Decoder::corrupt("a future of no known kind");
  }
  Ref object = copy_at(handle, text_of(where.get()), error.get());
  if (handle.kind == Kind::kOutcome && error.get() == Py_None)
    state_of(object.get())->arrive(decoder.value());
  return object;
}

void wait(PyObject* future, runtime::Work* work) {
  PyFutureState* const state = state_of(future);
  if (state->is_ready()) {
    state->runtime().post_for_next_turn(work);
  } else {
    state->when_ready(work);
  }
}

// What a call returns, for calls that are written in Python.
PyObject* call_future_function(PyObject*, PyObject* where) {
  return guarded([&]() -> PyObject* {
    std::string text(text_of(where));
    auto* state = new PyFutureState(Engine::current());
    Ref future = make_future_object(state);
    state->end_job_if_unobserved(std::move(text));
    return future.release();
  });
}

PyMethodDef methods[] = {
    {"set", as_method(&set), METH_FASTCALL, R"(set($self, value=None, /)
--

Sets the value, or one of several; does not block. Works on any PE that has a copy of the future.

If the future belongs to this PE, it takes the object itself. If it belongs to another PE, the value travels like
an argument of an entry method.

Args:
    value: any object that travels.

Raises:
    weft.Error: the future has all its values already, the value cannot travel, or the job has ended. If the future
        belongs to another PE, a set too many ends the job.)"},
    {"set_error", &set_error, METH_O, R"(set_error($self, exception, /)
--

Sets an error; does not block. Awaiting the future then raises weft.RemoteError with the exception's type, text and
traceback.

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

Whether the future is set. Always False for a future of another PE, unless the chare that holds it has moved with it.)"},
    {"result", &result, METH_NOARGS, R"(result($self, /)
--

The value; does not wait.

Raises:
    weft.RemoteError: the future was set to an error.
    weft.Error: the future is not set yet.)"},
    {"__reduce__", &reduce, METH_NOARGS, nullptr},
    {"__class_getitem__", &Py_GenericAlias, METH_O | METH_CLASS, nullptr},
    {},
};

PyMethodDef functions[] = {
    {"_future_at", as_method(&future_at_function), METH_FASTCALL, nullptr},
    {"_copied_future", as_method(&copied_future_function), METH_FASTCALL, nullptr},
    {"_set_copied_future", as_method(&set_copied_future_function), METH_FASTCALL, nullptr},
    {"_call_future", &call_future_function, METH_O, nullptr},
    {},
};

using Slots = AwaitableSlots<&poll>;
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_am_await, reinterpret_cast<void*>(&Slots::itself)},
    {Py_am_send, reinterpret_cast<void*>(&Slots::send)},
    {Py_tp_iter, reinterpret_cast<void*>(&Slots::itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(&Slots::next)},
    {Py_tp_methods, methods},
    {Py_tp_doc, const_cast<char*>(R"(Future(num_values=None)
--

A value that is set once, on any PE that has a copy of the future.

It belongs to the PE that makes it, and is awaited, or given a callback, there. A copy that was sent as an argument
can be set where it arrives. A copy in the state of a chare that moves can be awaited on the chare's new PE.

``weft.Future(n)`` is set n times, by any chares, and is then ready: its result is the list of the n values in the
order in which they arrived. The first error that is set is the result at once; what is set later is dropped.

Args:
    num_values: None for a single value, which is the result; or the number of values, 0 or more, whose list is.

Raises:
    weft.Error: no job is running, or a negative number.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Future", sizeof(FutureObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void init_future(PyObject* module) {
  future_type = add_type(module, spec);
  add_awaitable(future_type, &wait);
  add_encoding(future_type, &encode);
  add_decoding(ValueTag::kFuture, &decode);
  add_decoding(ValueTag::kCopiedFuture, &decode_copied);
  add_functions(module, functions);
}

Ref make_future_object(PyFutureState* state) {
  state->acquire();
  PyObject* object = future_type->tp_alloc(future_type, 0);
  if (object == nullptr) {
    state->release();
    throw PythonError();
  }
  reinterpret_cast<FutureObject*>(object)->state = state;
  return Ref::steal(object);
}

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
