#include "buffers/streams/stream.h"

#include <charconv>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "weft/base/error.h"

#include "await/memory_operation.h"
#include "base/format.h"
#include "engine/engine.h"
#include "memory/kinds/kind.h"
#include "memory/kinds/native_api.h"
#include "memory/memory.h"
#include "support/errors.h"

namespace weft::python {

namespace {

constexpr std::uintptr_t kLegacyDefaultStream = 1;

struct OwnStream {
  OwnStream(Engine& engine_in, memory::Place place_in)
      : engine(engine_in), place(place_in), handle(engine_in.create_stream(place_in)) {}
  ~OwnStream() { engine->destroy_stream(place, handle); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  EngineRef engine;
  memory::Place place;
  memory::StreamHandle handle;
};

struct StreamObject {
  PyObject_HEAD std::shared_ptr<OwnStream> own;
};

PyTypeObject* stream_type = nullptr;

StreamObject* as_object(PyObject* object) { return reinterpret_cast<StreamObject*>(object); }
OwnStream* as_stream(PyObject* object) { return as_object(object)->own.get(); }

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

memory::StreamHandle to_handle(std::uintptr_t number) {
  return reinterpret_cast<memory::StreamHandle>(number);
}

// The device number is negative if the text has none.
std::optional<memory::Place> parse_place(std::string_view text) {
  std::size_t colon = text.find(':');
  std::optional<memory::Kind> kind = memory::kind_from_name(text.substr(0, colon));
  if (!kind) return std::nullopt;
  constexpr std::int16_t own_device = -1;
  memory::Place place{*kind, *kind == memory::Kind::kHost ? std::int16_t{0} : own_device};
  if (colon == std::string_view::npos) return place;
  if (place.is_host()) return std::nullopt;
  std::string_view digits = text.substr(colon + 1);
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  auto [parsed_to, error] = std::from_chars(begin, end, place.device);
  if (error != std::errc() || parsed_to != end || place.device < 0) return std::nullopt;
  return place;
}

// Null if there is no such attribute.
Ref attribute(PyObject* object, const char* name) {
  Ref value = Ref::steal(PyObject_GetAttrString(object, name));
  if (value) return value;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw PythonError();
  PyErr_Clear();
  return value;
}

// An attribute that is an int; null if there is none.
Ref int_attribute(PyObject* object, const char* name) {
  Ref value = attribute(object, name);
  return value && PyLong_Check(value.get()) ? value : Ref();
}

// Older CuPy's streams have no __cuda_stream__. Their .ptr is also an attribute of events, pointers and memory, which wait for no
// event.
Ref cupy_handle(PyObject* object) {
  return attribute(object, "wait_event") ? int_attribute(object, "ptr") : Ref();
}

// Numba's streams have __cuda_stream__ in its latest versions alone. All have a handle and give its number as int(stream), which
// its events and contexts do not.
Ref numba_handle(PyObject* object) {
  const bool is_stream = PyNumber_Check(object) != 0 && attribute(object, "handle");
  return is_stream ? checked(PyNumber_Long(object)) : Ref();
}

// The handle of another library's stream object; null if the object is not a stream. In all of these libraries 0
// is the default stream.
Ref foreign_handle(PyObject* object) {
  const Ref protocol = attribute(object, "__cuda_stream__");
  if (!protocol) {
    if (Ref handle = int_attribute(object, "cuda_stream")) return handle;
    if (Ref handle = cupy_handle(object)) return handle;
    return numba_handle(object);
  }
  Ref pair = PyCallable_Check(protocol.get()) != 0 ? checked(PyObject_CallNoArgs(protocol.get())) : protocol;
  if (PyTuple_Check(pair.get()) == 0 || PyTuple_GET_SIZE(pair.get()) != 2 ||
      PyLong_Check(PyTuple_GET_ITEM(pair.get(), 1)) == 0) {
    invalid(base::format("the __cuda_stream__ of a {} gives {}, not (0, handle)", type_name_of(object),
                         readable(pair.get())));
  }
  if (PyLong_AsLong(PyTuple_GET_ITEM(pair.get(), 0)) != 0) {
    PyErr_Clear();
    invalid(base::format("the __cuda_stream__ of a {} has version {}; Weft knows version 0",
                         type_name_of(object), readable(PyTuple_GET_ITEM(pair.get(), 0))));
  }
  return Ref::borrow(PyTuple_GET_ITEM(pair.get(), 1));
}

memory::StreamHandle weft_stream_for(OwnStream* stream, memory::Place place, const char* use) {
  if (stream->place == place) return stream->handle;
  invalid(base::format("{} got a stream of {} for memory on {}; make one with weft.Stream(\"{}\")", use,
                       memory::place_name(stream->place), memory::place_name(place),
                       memory::place_name(place)));
}

}  // namespace

memory::Place place_from(PyObject* kind, const char* use) {
  std::optional<memory::Place> place;
  if (PyUnicode_Check(kind)) place = parse_place(text_of(kind));
  if (place && place->device < 0) return Engine::current().runtime().own_place(place->kind);
  if (place) return *place;
  invalid(
      base::format("{}: there is no memory kind {}; kinds are \"host\", \"cuda:0\", \"emulated:0\" and so "
                   "on by device",
                   use, readable(kind)));
}

memory::StreamHandle stream_from_handle(PyObject* number, const char* what) {
  int overflow = 0;
  long long value = PyLong_Check(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
  if (value > 0 && overflow == 0) return to_handle(static_cast<std::uintptr_t>(value));
  invalid(
      base::format("{} is {}; it is a stream's handle, 1 for CUDA's legacy default stream, 2 for its "
                   "per-thread one, or None; 0 could be either",
                   what, readable(number)));
}

memory::StreamHandle legacy_default_stream() { return to_handle(kLegacyDefaultStream); }

NamedStream stream_from(PyObject* object, memory::Place place, const char* use) {
  if (object == nullptr || object == Py_None) return {};
  if (place.is_host()) {
    invalid(
        base::format("{} got a stream for host memory, which has none; await weft.stream_done(stream) "
                     "first",
                     use));
  }
  if (Py_TYPE(object) == stream_type) {
    return {weft_stream_for(as_stream(object), place, use), Ref::borrow(object)};
  }
  if (PyLong_Check(object)) return {stream_from_handle(object, use), Ref()};
  Ref handle = foreign_handle(object);
  if (!handle) {
    invalid(base::format(
        "{} got a {} for a stream; pass a weft.Stream, a stream of CuPy, PyTorch or Numba, an object "
        "with __cuda_stream__, or a handle (an int)",
        use, type_name_of(object)));
  }
  if (memory::native_api_of(place.kind) != memory::NativeApi::kCuda) {
    invalid(base::format("{} got a CUDA stream for memory on {}", use, memory::place_name(place)));
  }
  if (PyObject_IsTrue(handle.get()) == 0) return {legacy_default_stream(), Ref::borrow(object)};
  return {stream_from_handle(handle.get(), use), Ref::borrow(object)};
}

// --- weft.Stream

namespace {

PyObject* make(PyTypeObject* type, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"kind", nullptr};
    PyObject* kind = nullptr;
    if (PyArg_ParseTupleAndKeywords(positional, keywords, "O:Stream", const_cast<char**>(names), &kind) ==
        0) {
      throw PythonError();
    }
    Engine& engine = Engine::current();
    auto own = std::make_shared<OwnStream>(engine, place_from(kind, "weft.Stream"));
    Ref object = checked(PyType_GenericAlloc(type, 0));
    new (&as_object(object.get())->own) std::shared_ptr<OwnStream>(std::move(own));
    return object.release();
  });
}

void deallocate(PyObject* self) {
  Engine::drop_on_pe_thread(std::move(as_object(self)->own));
  as_object(self)->~StreamObject();
  free_object(self);
}

PyObject* get_kind(PyObject* self, void*) {
  return guarded([self] { return make_text(memory::place_name(as_stream(self)->place)).release(); });
}

PyObject* get_handle(PyObject* self, void*) { return PyLong_FromVoidPtr(as_stream(self)->handle); }

PyObject* cuda_stream(PyObject* self, PyObject*) {
  return guarded([self]() -> PyObject* {
    OwnStream* stream = as_stream(self);
    if (memory::native_api_of(stream->place.kind) != memory::NativeApi::kCuda) {
      invalid(base::format("a stream of {} is no CUDA stream", memory::place_name(stream->place)));
    }
    return Py_BuildValue("(iN)", 0, PyLong_FromVoidPtr(stream->handle));
  });
}

PyObject* text(PyObject* self) {
  return guarded([self] {
    return make_text(base::format("<weft.Stream of {}>", memory::place_name(as_stream(self)->place)))
        .release();
  });
}

// The device of another library's stream. PyTorch and CuPy name it; for others it is this PE's own device.
memory::Place device_of_foreign(Engine& engine, PyObject* stream) {
  memory::Place place = engine.runtime().own_place(memory::Kind::kCuda);
  Ref number = int_attribute(stream, "device_id");  // CuPy
  if (!number) {
    Ref device = Ref::steal(PyObject_GetAttrString(stream, "device"));  // PyTorch
    if (!device) PyErr_Clear();
    if (device) number = int_attribute(device.get(), "index");
  }
  long ordinal = number ? PyLong_AsLong(number.get()) : -1;
  PyErr_Clear();
  if (ordinal >= 0 && ordinal <= std::numeric_limits<std::int16_t>::max()) {
    place.device = static_cast<std::int16_t>(ordinal);
  }
  return place;
}

bool is_given(PyObject* argument) { return argument != nullptr && argument != Py_None; }

}  // namespace

PlacedStream placed_stream_from(PyObject* stream, PyObject* kind, const char* use) {
  memory::Place place;
  if (is_given(kind)) {
    place = place_from(kind, use);
  } else if (Py_TYPE(stream) == stream_type) {
    place = as_stream(stream)->place;
  } else {
    place = device_of_foreign(Engine::current(), stream);
  }
  return {place, stream_from(stream, place, use)};
}

PlacedStream placed_stream_or_default(PyObject* stream, PyObject* kind, const char* use) {
  Engine& engine = Engine::current();
  memory::Memory& memory = engine.runtime().memory();
  if (is_given(stream)) {
    PlacedStream named = placed_stream_from(stream, kind, use);
    if (memory.backend(named.place.kind) == nullptr)
      base::throw_status(memory.availability(named.place.kind));
    return named;
  }
  const auto own =
      memory.backend(memory::Kind::kCuda) != nullptr ? memory::Kind::kCuda : memory::Kind::kEmulated;
  const memory::Place place = is_given(kind) ? place_from(kind, use) : engine.runtime().own_place(own);
  if (place.is_host()) invalid(base::format("{} names host memory, which has no streams", use));
  memory::KindBackend* const backend = memory.backend(place.kind);
  if (backend == nullptr) base::throw_status(memory.availability(place.kind));
  // Kernels on devices of software go to a stream of the engine's if they name none.
  if (backend->software_device() != nullptr) return {place, {engine.own_stream(place), Ref()}};
  return {place, {backend->default_stream(), Ref()}};
}

namespace {

PyObject* stream_done(PyObject*, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("weft.stream_done", {"stream", "kind"}, 1, values, count, names);
    Engine& engine = Engine::current();
    PlacedStream named = placed_stream_from(arguments[0], arguments[1], "weft.stream_done");
    return start_stream_wait(engine, named.place, named.stream.handle, std::move(named.stream.keeper))
        .release();
  });
}

PyGetSetDef properties[] = {
    {"kind", &get_kind, nullptr, "The kind of memory and the device it belongs to: ``\"cuda:0\"``.", nullptr},
    {"handle", &get_handle, nullptr, "The stream's handle, an int (CUDA: a CUstream).", nullptr},
    {},
};
PyMethodDef methods[] = {
    {"__cuda_stream__", &cuda_stream, METH_NOARGS,
     "__cuda_stream__($self, /)\n--\n\n``(0, handle)``, by which CUDA libraries take this stream."},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_tp_doc, const_cast<char*>(R"(Stream(kind)
--

A queue of work on a device of this PE; it does not wait for other streams.

Args:
    kind: ``"cuda:0"`` or ``"emulated:0"``; ``"cuda"`` is this PE's own GPU.

Raises:
    weft.Error: no job is running, or no such kind or device in this process.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.Stream", sizeof(StreamObject), 0, Py_TPFLAGS_DEFAULT, slots};

PyMethodDef functions[] = {
    {"stream_done", as_method(&stream_done), METH_FASTCALL | METH_KEYWORDS, R"(stream_done(stream, kind=None)
--

Awaitable: ready when the work that is queued on `stream` so far is done. Other entry methods of the PE run
meanwhile.

Args:
    stream: a weft.Stream, the stream of another library (CuPy, PyTorch, Numba, anything with ``__cuda_stream__``), or
        the handle of a CUDA stream (1: the legacy default stream, 2: the per-thread one).
    kind: the device of the stream, such as ``"cuda:1"``, if the stream does not name it; by default this PE's GPU.

Returns:
    a weft.Operation of None.

Raises:
    weft.Error: not a stream; when awaited: work on it failed.)"},
    {},
};

}  // namespace

void init_stream(PyObject* module) {
  stream_type = add_type(module, spec);
  add_functions(module, functions);
}

}  // namespace weft::python
