#include "await/travelling_future.h"

#include <limits>
#include <typeinfo>

#include "await/future.h"
#include "base/format.h"
#include "codec/decoder.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "runtime/future_table.h"
#include "support/errors.h"

namespace weft::python {

namespace {

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
  // Cheaper than a dynamic_cast, and enough: no class derives from PyFutureState.
  auto* state = known != nullptr && typeid(*known) == typeid(PyFutureState)
                    ? static_cast<PyFutureState*>(known)
                    : nullptr;
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
  PyFutureState& state = *future_state(object.get());
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
  state.look();  // the program reads the copy
  if (handle.kind == Kind::kOutcome) state.observe();
  return duty;
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
    future_state(arguments[0])->arrive(Ref::borrow(PyTuple_GET_ITEM(value, 0)));
    Py_RETURN_NONE;
  });
}

bool encode(Encoder& encoder, PyObject* future) {
  PyFutureState& state = *future_state(future);
  state.engine().expect_open_on_any_thread();
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
  const runtime::MovingFutures::Outcome packing(state);
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
    future_state(object.get())->arrive(decoder.value());
  return object;
}

PyMethodDef functions[] = {
    {"_future_at", as_method(&future_at_function), METH_FASTCALL, nullptr},
    {"_copied_future", as_method(&copied_future_function), METH_FASTCALL, nullptr},
    {"_set_copied_future", as_method(&set_copied_future_function), METH_FASTCALL, nullptr},
    {},
};

// Pickled inside another object it travels as its address. In the state of an element that moves, the value of a future that
// is set is the state of the pickled object, so that it may refer to the future itself.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyFutureState& state = *future_state(self);
    state.engine().expect_open_on_any_thread();
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

PyMethodDef reduce_method = {"__reduce__", &reduce, METH_NOARGS, nullptr};

}  // namespace

void init_travelling_futures(PyObject* module) {
  const Ref future = attribute(module, "Future");
  auto* const type = reinterpret_cast<PyTypeObject*>(future.get());
  add_encoding(type, &encode, Nature::kOwner);
  add_decoding(ValueTag::kFuture, &decode);
  add_decoding(ValueTag::kCopiedFuture, &decode_copied);
  add_functions(module, functions);
  checked(PyObject_SetAttrString(future.get(), "__reduce__",
                                 checked(PyDescr_NewMethod(type, &reduce_method)).get()));
}

}  // namespace weft::python
