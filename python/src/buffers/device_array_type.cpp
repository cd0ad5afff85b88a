#include "buffers/device_array_type.h"

#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dtype.h"
#include "buffers/device/device_array.h"
#include "buffers/device/exports.h"
#include "buffers/device_array_copies.h"
#include "buffers/streams/stream.h"
#include "engine/engine.h"
#include "support/errors.h"

namespace weft::python {

namespace {

[[noreturn]] void invalid(const std::string& message) {
  throw base::Error(base::StatusCode::kInvalidArgument, message);
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
    memory::Place place = place_from(kind, "weft.DeviceArray");
    ArrayForm form = make_form(make_dtype(description), extents_from(shape, "weft.DeviceArray"));
    return allocate_device_array(std::move(form), place).release();
  });
}

void deallocate(PyObject* self) {
  Engine::drop_on_pe_thread(std::move(as_device_array(self)->owner));
  as_device_array(self)->~DeviceArrayObject();
  free_object(self);
}

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
        base::format("a DeviceArray is sliced along its first dimension only, array[i] or array[i:j], so "
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
      invalid(base::format("an array of {} has not as many elements as shape {}", form_text(array->form),
                           readable(shape)));
    }
    return make_view(array, std::move(form), 0).release();
  });
}

PyObject* on(PyObject* self, PyObject* stream) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    NamedStream named = stream_from(stream, array->memory.place, "DeviceArray.on");
    return make_view_on(array, named.handle, std::move(named.keeper)).release();
  });
}

PyObject* no_pickle(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    invalid(base::format(
        "a DeviceArray ({}) is not pickled inside another object; pass it as an argument of its own, or in a "
        "tuple, list or dict",
        form_text(as_device_array(self)->form)));
  });
}

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
    return make_text(base::format("<weft.DeviceArray {} on {}>", form_text(array->form),
                                  memory::place_name(array->memory.place)))
        .release();
  });
}

PyGetSetDef properties[] = {
    {"shape", &get_shape, nullptr, "The extents, a tuple.", nullptr},
    {"dtype", &get_dtype, nullptr, "The element type, a numpy.dtype.", nullptr},
    {"strides", &get_strides, nullptr, "The strides in bytes, a tuple; those of C order.", nullptr},
    {"ndim", &get_num_dimensions, nullptr, "The number of dimensions.", nullptr},
    {"size", &get_size, nullptr, "The number of elements.", nullptr},
    {"nbytes", &get_num_bytes, nullptr, "The size in bytes.", nullptr},
    {"kind", &get_kind, nullptr, "Where the memory is: ``\"host\"``, ``\"cuda:0\"``, ``\"emulated:1\"``.",
     nullptr},
    {"device", &get_device, nullptr, "The number of the device; 0 for host memory.", nullptr},
    {"ptr", &get_pointer, nullptr,
     "The address, an int; the CPU may use it only where the kind is host. 0 without elements.", nullptr},
    {"stream", &get_stream, nullptr, "The stream that the array names (see on), None for none.", nullptr},
    {"__cuda_array_interface__", &device_array_interface, nullptr,
     "The CUDA array interface, version 3; AttributeError for memory of another kind.", nullptr},
    {},
};

PyMethodDef methods[] = {
    {"copy_from", as_method(&copy_into_device_array), METH_FASTCALL | METH_KEYWORDS,
     R"(copy_from($self, source, stream=None)
--

Starts copying `source` into this array and returns a weft.Operation; awaiting it gives the array. Does not block.

Both belong to the runtime until the operation is complete, and are kept alive until then. The copy is then visible
to every stream.

Args:
    source: an array of the same shape and dtype in memory of any kind, or plain bytes of the same size.
    stream: the copy starts after the work that is queued on it: a stream of this array's device, or of the source's
        if this array is in host memory.

Raises:
    weft.Error: another shape or dtype, memory that is not contiguous, or no such stream; when awaited: the copy
        failed.)"},
    {"to_host", as_method(&copy_device_array_to_host), METH_FASTCALL | METH_KEYWORDS,
     R"(to_host($self, stream=None)
--

Starts copying this array into a new NumPy array and returns a weft.Operation; awaiting it gives the new array. Does
not block.

Args:
    stream: the copy starts after the work that is queued on it.

Raises:
    weft.Error: no such stream; when awaited: the copy failed.)"},
    {"reshape", &reshape, METH_O, R"(reshape($self, shape, /)
--

A view of the same elements in another shape.

Args:
    shape: an int or a tuple with the same number of elements.

Raises:
    weft.Error: another number of elements.)"},
    {"on", &on, METH_O, R"(on($self, stream, /)
--

A view of the same memory that names a stream: a send, a receive or a copy of it starts after the work that is
queued there by then.

Args:
    stream: a weft.Stream, a stream of another library, a handle (an int), or None for no stream.

Raises:
    weft.Error: not a stream of this array's device.)"},
    {"__dlpack_device__", &device_array_dlpack_device, METH_NOARGS, R"(__dlpack_device__($self, /)
--

(type, number), as DLPack numbers devices. BufferError for emulated memory.)"},
    {"__dlpack__", as_method(&device_array_dlpack), METH_FASTCALL | METH_KEYWORDS,
     R"(__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)
--

A DLPack capsule over this memory, versioned if the consumer takes that. BufferError for emulated memory, and if a
copy or another device is asked for.)"},
    {"__array__", as_method(&device_array_as_numpy), METH_FASTCALL | METH_KEYWORDS, nullptr},
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
    {Py_bf_getbuffer, reinterpret_cast<void*>(&device_array_host_buffer)},
    {Py_tp_doc, const_cast<char*>(R"(DeviceArray(shape, dtype, kind)
--

An array in memory of a kind, in C order; its elements are not set.

It is sent, received into and passed to entry methods like any array. CuPy, PyTorch, Numba and JAX take its memory
through the CUDA array interface and DLPack. ``array[i]`` and ``array[i:j]`` are views. The memory is freed when no
array, no view and no operation uses it any more.

Args:
    shape: an int or a tuple of up to 32 extents.
    dtype: anything that numpy.dtype takes, except Python objects.
    kind: ``"cuda:0"``, ``"emulated:0"`` (device memory on a machine without a device), one of these without a number
        for this PE's own device, or ``"host"``.

Raises:
    weft.Error: no job is running, no such kind or device in this process, or no memory left there.)")},
    {0, nullptr},
};
PyType_Spec spec = {"weft.DeviceArray", sizeof(DeviceArrayObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

void init_device_array(PyObject* module) { device_array_type = add_type(module, spec); }

}  // namespace weft::python
