#include "buffers/device/exports.h"

#include <cstdint>

#include "base/format.h"
#include "buffers/arrays/array_interface.h"
#include "buffers/arrays/arrays.h"
#include "buffers/device/device_array.h"
#include "buffers/dlpack/export.h"
#include "memory/kinds/native_api.h"
#include "support/errors.h"

namespace weft::python {

namespace {

// Records that another library uses the array's memory. A library does not say when its work is done. Landed
// memory is therefore reused after the work queued on the stream that the library names, or else on CUDA's legacy
// default stream, which waits for all streams that are not created as non-blocking.
void lend(DeviceArrayObject* array, PyObject* stream) {
  if (array->landed == nullptr || memory::native_api_of(array->memory.place.kind) != memory::NativeApi::kCuda)
    return;
  long long number = stream != nullptr && PyLong_Check(stream) ? PyLong_AsLongLong(stream) : 0;
  array->landed->attachment.use_on(
      reinterpret_cast<memory::StreamHandle>(static_cast<std::uintptr_t>(number > 0 ? number : 1)));
}

std::string no_host_access(const memory::Buffer& memory) {
  return base::format("memory on {} cannot be read by the CPU; await array.to_host() for a NumPy array",
                      memory::place_name(memory.place));
}

}  // namespace

PyObject* device_array_interface(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    if (memory::native_api_of(array->memory.place.kind) != memory::NativeApi::kCuda) {
      PyErr_Format(PyExc_AttributeError, "memory on %s is no CUDA memory; await array.to_host() instead",
                   memory::place_name(array->memory.place).c_str());
      throw PythonError();
    }
    lend(array, nullptr);
    return make_cuda_array_interface(array->form, array->memory).release();
  });
}

PyObject* device_array_dlpack_device(PyObject* self, PyObject*) {
  return guarded([&] { return make_dlpack_device(as_device_array(self)->memory).release(); });
}

PyObject* device_array_dlpack(PyObject* self, PyObject* const* values, Py_ssize_t count, PyObject* names) {
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

// The buffer of a NumPy array over the same memory, for host memory.
int device_array_host_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_status([&] {
    DeviceArrayObject* array = as_device_array(self);
    view->obj = nullptr;
    if (!array->memory.place.is_host()) {
      PyErr_SetString(PyExc_BufferError, no_host_access(array->memory).c_str());
      throw PythonError();
    }
    Ref over = make_array_over(array->form, array->memory.data, Ref::borrow(self));
    checked(PyObject_GetBuffer(over.get(), view, flags));  // the view keeps `over`, which keeps `self`
  });
}

PyObject* device_array_as_numpy(PyObject* self, PyObject* const*, Py_ssize_t, PyObject*) {
  return guarded([&]() -> PyObject* {
    DeviceArrayObject* array = as_device_array(self);
    if (!array->memory.place.is_host()) {
      PyErr_SetString(PyExc_TypeError, no_host_access(array->memory).c_str());
      throw PythonError();
    }
    return make_array_over(array->form, array->memory.data, Ref::borrow(self)).release();
  });
}

}  // namespace weft::python
