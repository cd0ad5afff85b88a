#include "buffers/object_buffer.h"

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/array_interface.h"
#include "buffers/arrays/arrays.h"
#include "buffers/device/device_array.h"
#include "buffers/dlpack/import.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Whether the buffer protocol gives the object's memory. Array classes of CuPy and JAX have the protocol although
// only their arrays in host memory support it.
bool has_host_buffer(PyObject* object) {
  if (PyObject_CheckBuffer(object) == 0) return false;
  if (PyBytes_CheckExact(object) != 0 || PyByteArray_CheckExact(object) != 0 ||
      PyMemoryView_Check(object) != 0)
    return true;
  return !is_device_object(object);
}

bool find_protocol_memory(const BufferRequest& request, ObjectBuffer& found) {
  if (!has_host_buffer(request.object)) return false;
  found.keeper = Ref::steal(PyMemoryView_FromObject(request.object));
  if (!found.keeper) {
    unusable(request, base::format("that gives no buffer ({})", readable(PythonError::take().get())));
  }
  const ViewedBuffer view(found.keeper.get());
  if (PyBuffer_IsContiguous(view.get(), 'C') == 0) {
    unusable(request, "that is not C-contiguous; pass contiguous memory");
  }
  if (request.access == Access::kWrite && view->readonly != 0) {
    unusable(request, "that is read-only; pass writable, contiguous memory");
  }
  found.memory.data = view->buf;
  found.memory.size_bytes = static_cast<std::size_t>(view->len);
  if (request.form != nullptr) request.form->size_bytes = found.memory.size_bytes;
  return true;
}

// PyTorch gives no memory of a tensor that requires grad, only of the same tensor detached from its graph. The
// detached tensor; null for other objects.
Ref detached(const BufferRequest& request) {
  const Ref requires_grad = optional_attribute(request, "requires_grad");
  if (requires_grad.get() != Py_True) return {};
  return checked(PyObject_CallMethod(request.object, "detach", nullptr));
}

bool find_foreign_memory(const BufferRequest& request, ObjectBuffer& found) {
  const Ref tensor = detached(request);
  BufferRequest plain = request;
  if (tensor) plain.object = tensor.get();
  return find_exchanged_memory(plain, found) || find_cuda_array_memory(plain, found) ||
         find_dlpack_memory(plain, found);
}

}  // namespace

ObjectBuffer buffer_of(const BufferRequest& request) {
  if (is_device_array(request.object)) return device_array_buffer(request);
  ObjectBuffer found;
  if (find_array_memory(request, found) || find_protocol_memory(request, found) ||
      find_foreign_memory(request, found)) {
    return found;
  }
  unusable(request,
           "which has no buffer; pass a weft.DeviceArray, a NumPy array, bytes, or another object with the "
           "buffer protocol, __cuda_array_interface__ or __dlpack__");
}

bool is_device_object(PyObject* object) {
  static PyObject* const interface = make_text("__cuda_array_interface__").release();
  static PyObject* const dlpack = make_text("__dlpack__").release();
  if (is_device_array(object)) return true;
  if (PyType_Check(object)) return false;  // a class has the attributes of its objects
  if (has_exchange_table(object)) return is_on_dlpack_device(object);
  // None counts as absent: an object may answer for every name, as mocks do.
  const Ref described = Ref::steal(PyObject_GetAttr(object, interface));
  PyErr_Clear();
  if (described && described.get() != Py_None) return true;
  return PyObject_HasAttr(object, dlpack) != 0 && is_on_dlpack_device(object);
}

namespace {

// For tests: (address, size in bytes, kind, stream, dtype, shape, keeper).
PyObject* describe(PyObject*, PyObject* const* values, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    Arguments arguments("_buffer_of", {"object", "writable"}, 2, values, count, nullptr);
    ArrayForm form;
    Access access = PyObject_IsTrue(arguments[1]) != 0 ? Access::kWrite : Access::kRead;
    ObjectBuffer found = buffer_of({arguments[0], access, "_buffer_of", &form});
    return Py_BuildValue(
        "(NnNNONO)", PyLong_FromVoidPtr(found.memory.data), static_cast<Py_ssize_t>(found.memory.size_bytes),
        make_text(memory::place_name(found.memory.place)).release(), PyLong_FromVoidPtr(found.memory.stream),
        form.dtype ? form.dtype.get() : Py_None, number_tuple(form.extents).release(), found.keeper.get());
  });
}

PyMethodDef functions[] = {
    {"_buffer_of", as_method(&describe), METH_FASTCALL, nullptr},
    {},
};

}  // namespace

void init_object_buffer(PyObject* module) { add_functions(module, functions); }

}  // namespace weft::python
