#include "buffers/device_array.h"

#include <fmt/format.h>

#include <new>
#include <utility>

#include "weft/base/error.h"

#include "await/memory_operation.h"
#include "buffers/array_interface.h"
#include "buffers/arrays.h"
#include "buffers/dlpack.h"
#include "buffers/stream.h"
#include "job/engine.h"
#include "memory/memory.h"

namespace weft::python {

namespace {

struct DeviceArrayObject {
  PyObject_HEAD ArrayForm form;
  memory::Buffer memory;
  std::shared_ptr<void> owner;
  LandedMemory* landed;  // the owner, where the memory came with a message
  Ref stream_keeper;
};

PyTypeObject* type = nullptr;

DeviceArrayObject* as_device_array(PyObject* object) { return reinterpret_cast<DeviceArrayObject*>(object); }

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
}

// What an array made here owns.
class OwnMemory {
 public:
  OwnMemory(Engine& engine, std::size_t size_bytes, memory::Place place) : engine_(engine) {
    base::Result<memory::Buffer> made = engine.runtime().memory().allocate(size_bytes, place);
    if (!made.ok()) base::throw_status(made.status());
    memory_ = *made;
  }
  ~OwnMemory() {
    // A device that has failed by now takes its memory with it.
    static_cast<void>(engine_->runtime().memory().deallocate(memory_));
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  const memory::Buffer& memory() const { return memory_; }

 private:
  EngineRef engine_;
  memory::Buffer memory_;
};

Ref make_object(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<void> owner,
                LandedMemory* landed, Ref stream_keeper) {
  Ref object = checked(type->tp_alloc(type, 0));
  DeviceArrayObject* array = as_device_array(object.get());
  new (&array->form) ArrayForm(std::move(form));
  new (&array->memory) memory::Buffer(memory);
  new (&array->owner) std::shared_ptr<void>(std::move(owner));
  array->landed = landed;
  new (&array->stream_keeper) Ref(std::move(stream_keeper));
  return object;
}

// A part of the same memory, or the same part in another form.
Ref make_view(DeviceArrayObject* array, ArrayForm form, std::size_t offset_bytes) {
  memory::Buffer memory = array->memory;
  memory.size_bytes = form.size_bytes;
  if (memory.data != nullptr) memory.data = static_cast<std::byte*>(memory.data) + offset_bytes;
  return make_object(std::move(form), memory, array->owner, array->landed, array->stream_keeper);
}

PyObject* make(PyTypeObject*, PyObject* positional, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* const names[] = {"shape", "dtype", "kind", nullptr};
    PyObject* shape = nullptr;
    PyObject* description = nullptr;
    PyObject* kind = nullptr;
    if (PyArg_ParseTupleAndKeywords(positional, keywords, "OOO:DeviceArray", const_cast<char**>(names),
                                    &shape, &description, &kind) == 0) {
      throw PythonError();
    }
    Engine& engine = Engine::current();
    memory::Place place = place_from(kind, "weft.DeviceArray");
    ArrayForm form = make_form(make_dtype(description), extents_from(shape, "weft.DeviceArray"));
    auto own = std::make_shared<OwnMemory>(engine, form.size_bytes, place);
    const memory::Buffer& memory = own->memory();
    return make_object(std::move(form), memory, own, nullptr, Ref()).release();
  });
}

void deallocate(PyObject* self) {
  Engine::let_go(std::move(as_device_array(self)->owner));
  as_device_array(self)->~DeviceArrayObject();
  free_object(self);
}

// --- Views

void expect_dimensions(DeviceArrayObject* array) {
  if (array->form.extents.empty()) invalid("an array without dimensions has no elements to choose from");
}

Ref element_view(DeviceArrayObject* array, PyObject* index) {
  Py_ssize_t at = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (at == -1 && PyErr_Occurred() != nullptr) throw PythonError();
  std::int64_t extent = array->form.extents[0];
  std::int64_t from = at < 0 ? at + extent : at;
  if (from < 0 || from >= extent) {
    PyErr_Format(PyExc_IndexError, "index %zd is outside an array of length %zd", at,
                 static_cast<Py_ssize_t>(extent));
    throw PythonError();
  }
  ArrayForm form = array->form;
  form.extents.erase(form.extents.begin());
  form.size_bytes /= static_cast<std::size_t>(extent);
  std::size_t offset_bytes = form.size_bytes * static_cast<std::size_t>(from);
  return make_view(array, std::move(form), offset_bytes);
}

Ref slice_view(DeviceArrayObject* array, PyObject* slice) {
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  checked(PySlice_Unpack(slice, &start, &stop, &step));
  if (step != 1) invalid("a slice of a DeviceArray has step 1, so that the view is contiguous");
  std::int64_t extent = array->form.extents[0];
  Py_ssize_t count = PySlice_AdjustIndices(extent, &start, &stop, step);
  ArrayForm form = array->form;
  std::size_t row_bytes = extent == 0 ? 0 : form.size_bytes / static_cast<std::size_t>(extent);
  form.extents[0] = count;
  form.size_bytes = row_bytes * static_cast<std::size_t>(count);
  return make_view(array, std::move(form), row_bytes * static_cast<std::size_t>(start));
}

PyObject* subscript(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    expect_dimensions(array);
    if (PySlice_Check(index)) return slice_view(array, index).release();
    if (PyIndex_Check(index)) return element_view(array, index).release();
    invalid(
        fmt::format("a DeviceArray is sliced along its first dimension only, array[i] or array[i:j], so "
                    "that views are contiguous; {} is neither",
                    readable(index)));
  });
}

Py_ssize_t length(PyObject* self) {
  try {
    expect_dimensions(as_device_array(self));
    return static_cast<Py_ssize_t>(as_device_array(self)->form.extents[0]);
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* reshape(PyObject* self, PyObject* shape) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    ArrayForm form = make_form(array->form.dtype, extents_from(shape, "DeviceArray.reshape"));
    if (num_elements(form) != num_elements(array->form)) {
      invalid(fmt::format("an array of {} has not as many elements as shape {}", form_text(array->form),
                          readable(shape)));
    }
    return make_view(array, std::move(form), 0).release();
  });
}

PyObject* on(PyObject* self, PyObject* stream) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    NamedStream named = stream_from(stream, array->memory.place, "DeviceArray.on");
    memory::Buffer memory = array->memory;
    memory.stream = named.handle;
    return make_object(array->form, memory, array->owner, array->landed, std::move(named.keeper)).release();
  });
}

// --- Copies

void expect_same_form(const ArrayForm& to, const ArrayForm& from, PyObject* source) {
  bool same = to.size_bytes == from.size_bytes;
  if (same && from.dtype) {
    int equal = PyObject_RichCompareBool(to.dtype.get(), from.dtype.get(), Py_EQ);
    checked(equal);
    same = equal != 0 && to.extents == from.extents;
  }
  if (same) return;
  invalid(fmt::format("DeviceArray.copy_from copies {} and got a {} of {}; both must have the same form",
                      form_text(to), type_name_of(source), form_text(from)));
}

bool overlap(const memory::Buffer& a, const memory::Buffer& b) {
  auto a_start = reinterpret_cast<std::uintptr_t>(a.data);
  auto b_start = reinterpret_cast<std::uintptr_t>(b.data);
  return a_start < b_start + b.size_bytes && b_start < a_start + a.size_bytes;
}

// A copy waits for `stream` on whichever side is a device's.
Ref name_stream(PyObject* stream, memory::Buffer& preferred, memory::Buffer& other, const char* use) {
  memory::Buffer& side = preferred.place.is_host() ? other : preferred;
  NamedStream named = stream_from(stream, side.place, use);
  if (named.handle != nullptr) side.stream = named.handle;
  return std::move(named.keeper);
}

PyObject* copy_from(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("DeviceArray.copy_from", {"source", "stream"}, 1, values, count, names);
    DeviceArrayObject* array = as_device_array(self);
    ArrayForm form;
    ObjectBuffer source = buffer_of({arguments[0], Access::kRead, "DeviceArray.copy_from", &form});
    expect_same_form(array->form, form, arguments[0]);
    memory::Buffer destination = array->memory;
    if (overlap(destination, source.memory)) {
      invalid("DeviceArray.copy_from got a part of its own memory; copy by way of another array");
    }
    Ref stream = name_stream(arguments[1], destination, source.memory, "DeviceArray.copy_from");
    Ref keepers = checked(Py_BuildValue("(OOO)", self, source.keeper.get(), stream ? stream.get() : Py_None));
    return start_copy(Engine::current(), destination, source.memory, std::move(keepers), Ref::borrow(self))
        .release();
  });
}

PyObject* to_host(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("DeviceArray.to_host", {"stream"}, 0, values, count, names);
    DeviceArrayObject* array = as_device_array(self);
    Ref result = make_array(array->form);
    ObjectBuffer destination = buffer_of({result.get(), Access::kWrite, "DeviceArray.to_host"});
    memory::Buffer source = array->memory;
    Ref stream = name_stream(arguments[0], source, destination.memory, "DeviceArray.to_host");
    Ref keepers = checked(Py_BuildValue("(OOO)", self, result.get(), stream ? stream.get() : Py_None));
    return start_copy(Engine::current(), destination.memory, source, std::move(keepers), result).release();
  });
}

// --- What other libraries see

// Other libraries queue work on what they are lent and do not say when it is done. Landed memory is used
// again after what is on the stream they name, else on CUDA's legacy default stream, which waits for all that
// do not opt out of that.
void lend(DeviceArrayObject* array, PyObject* stream) {
  if (array->landed == nullptr || array->memory.place.kind != memory::Kind::kCuda) return;
  long long number = stream != nullptr && PyLong_Check(stream) ? PyLong_AsLongLong(stream) : 0;
  array->landed->attachment.use_on(
      reinterpret_cast<memory::StreamHandle>(static_cast<std::uintptr_t>(number > 0 ? number : 1)));
}

PyObject* get_cuda_array_interface(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    if (array->memory.place.kind != memory::Kind::kCuda) {
      PyErr_Format(PyExc_AttributeError, "memory on %s is no CUDA memory; await array.to_host() instead",
                   memory::place_name(array->memory.place).c_str());
      throw PythonError();
    }
    lend(array, nullptr);
    return make_cuda_array_interface(array->form, array->memory).release();
  });
}

PyObject* dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] { return make_dlpack_device(as_device_array(self)->memory).release(); });
}

PyObject* dlpack(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    if (count > 0) {
      PyErr_SetString(PyExc_TypeError, "__dlpack__ takes keyword arguments only");
      throw PythonError();
    }
    Arguments arguments("__dlpack__", {"stream", "max_version", "dl_device", "copy"}, 0, values, count,
                        names);
    DeviceArrayObject* array = as_device_array(self);
    Ref capsule = make_dlpack_capsule(array->form, array->memory, Ref::borrow(self), arguments);
    lend(array, arguments[0]);
    return capsule.release();
  });
}

std::string no_host_access(const memory::Buffer& memory) {
  return fmt::format("memory on {} cannot be read by the CPU; await array.to_host() for a NumPy array",
                     memory::place_name(memory.place));
}

// NumPy takes an array's memory itself where it is the host's.
int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_status([&] {
    DeviceArrayObject* array = as_device_array(self);
    view->obj = nullptr;
    if (!array->memory.place.is_host()) {
      PyErr_SetString(PyExc_BufferError, no_host_access(array->memory).c_str());
      throw PythonError();
    }
    Ref over = make_array_over(array->form, array->memory.data, Ref::borrow(self));
    checked(PyObject_GetBuffer(over.get(), view, flags));  // keeps the array that keeps us
  });
}

PyObject* as_numpy(PyObject* self, PyObject* const*, Py_ssize_t, PyObject*) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    if (!array->memory.place.is_host()) {
      PyErr_SetString(PyExc_TypeError, no_host_access(array->memory).c_str());
      throw PythonError();
    }
    return make_array_over(array->form, array->memory.data, Ref::borrow(self)).release();
  });
}

PyObject* no_pickle(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    invalid(fmt::format(
        "a DeviceArray ({}) is not pickled inside another object; pass it as an argument of its own, or in a "
        "tuple, list or dict",
        form_text(as_device_array(self)->form)));
  });
}

// --- The type

PyObject* get_shape(PyObject* self, void*) {
  return guarded([self] { return number_tuple(as_device_array(self)->form.extents).release(); });
}
PyObject* get_strides(PyObject* self, void*) {
  return guarded([self] {
    const ArrayForm& form = as_device_array(self)->form;
    return number_tuple(strides_in(static_cast<std::int64_t>(item_size_bytes(form.dtype)), form.extents))
        .release();
  });
}
PyObject* get_dtype(PyObject* self, void*) { return Py_NewRef(as_device_array(self)->form.dtype.get()); }
PyObject* get_num_dimensions(PyObject* self, void*) {
  return PyLong_FromSize_t(as_device_array(self)->form.extents.size());
}
PyObject* get_size(PyObject* self, void*) {
  return PyLong_FromLongLong(num_elements(as_device_array(self)->form));
}
PyObject* get_num_bytes(PyObject* self, void*) {
  return PyLong_FromSize_t(as_device_array(self)->memory.size_bytes);
}
PyObject* get_kind(PyObject* self, void*) {
  return guarded(
      [self] { return make_text(memory::place_name(as_device_array(self)->memory.place)).release(); });
}
PyObject* get_device(PyObject* self, void*) {
  return PyLong_FromLong(as_device_array(self)->memory.place.device);
}
PyObject* get_pointer(PyObject* self, void*) {
  return PyLong_FromVoidPtr(as_device_array(self)->memory.data);
}
PyObject* get_stream(PyObject* self, void*) {
  DeviceArrayObject* array = as_device_array(self);
  if (array->stream_keeper) return Py_NewRef(array->stream_keeper.get());
  if (array->memory.stream == nullptr) Py_RETURN_NONE;
  return PyLong_FromVoidPtr(array->memory.stream);
}

PyObject* text(PyObject* self) {
  return guarded([self] {
    DeviceArrayObject* array = as_device_array(self);
    return make_text(fmt::format("<weft.DeviceArray {} on {}>", form_text(array->form),
                                 memory::place_name(array->memory.place)))
        .release();
  });
}

PyGetSetDef properties[] = {
    {"shape", &get_shape, nullptr, "The extents, a tuple.", nullptr},
    {"dtype", &get_dtype, nullptr, "The element type, a numpy.dtype.", nullptr},
    {"strides", &get_strides, nullptr, "In bytes; those of C order.", nullptr},
    {"ndim", &get_num_dimensions, nullptr, "How many dimensions.", nullptr},
    {"size", &get_size, nullptr, "How many elements.", nullptr},
    {"nbytes", &get_num_bytes, nullptr, "How many bytes.", nullptr},
    {"kind", &get_kind, nullptr, "Where the memory is: ``\"host\"``, ``\"cuda:0\"``, ``\"emulated:1\"``.",
     nullptr},
    {"device", &get_device, nullptr, "The number of the device; 0 for host memory.", nullptr},
    {"ptr", &get_pointer, nullptr,
     "The address, an int; the CPU may use it only where the kind is host. 0 without elements.", nullptr},
    {"stream", &get_stream, nullptr, "The stream that the array names (see on), None for none.", nullptr},
    {"__cuda_array_interface__", &get_cuda_array_interface, nullptr,
     "The CUDA array interface, version 3; AttributeError for memory of another kind.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"copy_from", as_method(&copy_from), METH_FASTCALL | METH_KEYWORDS,
     "copy_from($self, source, stream=None)\n--\n\n"
     "Starts copying `source` into this array and returns a weft.Operation; awaiting it gives the array.\n\n"
     "Both belong to the runtime until it is over, and are kept alive; the copy is then visible to every "
     "stream.\n\n"
     "Args:\n"
     "    source: an array of the same shape and dtype in memory of any kind, or plain bytes of the same "
     "size.\n"
     "    stream: whose queued work comes first, of the device of this array, or of the source's when this "
     "is\n"
     "        host memory.\n\n"
     "Raises:\n"
     "    weft.Error: another form, memory that is not contiguous, or no such stream; when awaited: the copy "
     "failed."},
    {"to_host", as_method(&to_host), METH_FASTCALL | METH_KEYWORDS,
     "to_host($self, stream=None)\n--\n\n"
     "Starts copying this array into a new NumPy array and returns a weft.Operation; awaiting it gives the "
     "array.\n\n"
     "Args:\n"
     "    stream: whose queued work comes first."},
    {"reshape", &reshape, METH_O,
     "reshape($self, shape, /)\n--\n\nA view of the same elements in another shape."},
    {"on", &on, METH_O,
     "on($self, stream, /)\n--\n\n"
     "A view of the same memory that names a stream: what sends, receives or copies it starts after the "
     "work\nthat is queued there by then. None names no stream."},
    {"__dlpack_device__", &dlpack_device, METH_NOARGS, "__dlpack_device__($self, /)\n--\n\n(type, number)."},
    {"__dlpack__", as_method(&dlpack), METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule, versioned where the consumer takes it; BufferError for emulated memory."},
    {"__array__", as_method(&as_numpy), METH_FASTCALL | METH_KEYWORDS, nullptr},
    {"__reduce__", &no_pickle, METH_NOARGS, nullptr},
    {},
};

PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_getset, properties},
    {Py_tp_methods, methods},
    {Py_tp_repr, reinterpret_cast<void*>(&text)},
    {Py_mp_subscript, reinterpret_cast<void*>(&subscript)},
    {Py_mp_length, reinterpret_cast<void*>(&length)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
    {Py_tp_doc,
     const_cast<char*>(
         "DeviceArray(shape, dtype, kind)\n--\n\n"
         "An array in memory of a kind, in C order; its elements are not set.\n\n"
         "It is sent, received into and passed to entry methods like any array, and gives its memory to "
         "CuPy, "
         "PyTorch, Numba\n"
         "and JAX through the CUDA array interface and DLPack. ``array[i]`` and ``array[i:j]`` are views. "
         "The "
         "memory is\n"
         "given back when no array and no operation uses it any more.\n\n"
         "Args:\n"
         "    shape: an int or a tuple.\n"
         "    dtype: anything that numpy.dtype takes, but Python objects.\n"
         "    kind: ``\"cuda:0\"``, ``\"emulated:0\"`` (device memory on a machine without a device), one of "
         "these\n"
         "        without a number for this PE's own device, or ``\"host\"``.\n\n"
         "Raises:\n"
         "    weft.Error: no such kind or device in this process, or no memory left there.")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.DeviceArray", sizeof(DeviceArrayObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

bool is_device_array(PyObject* object) { return Py_TYPE(object) == type; }

const ArrayForm& device_array_form(PyObject* object) { return as_device_array(object)->form; }

const memory::Buffer& device_array_memory(PyObject* object) { return as_device_array(object)->memory; }

Ref make_device_array(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<LandedMemory> landed) {
  LandedMemory* owner = landed.get();
  return make_object(std::move(form), memory, std::move(landed), owner, Ref());
}

bool find_device_array_memory(const BufferRequest& request, ObjectBuffer& found) {
  if (!is_device_array(request.object)) return false;
  found.memory = as_device_array(request.object)->memory;
  // Nothing has to be waited for to move nothing, wherever it lies.
  if (found.memory.size_bytes == 0) found.memory = {};
  found.keeper = Ref::borrow(request.object);
  if (request.form != nullptr) *request.form = as_device_array(request.object)->form;
  return true;
}

void init_device_array(PyObject* module) { type = add_type(module, spec); }

}  // namespace weft::python
