// weft.DeviceArray: an array in memory of any kind, including host memory. This unit has the object with its
// memory and form. The Python type is in device_array_type.*, copies are in device_array_copies.*, and the
// protocols for other libraries are in device_array_exports.*.
//
// Threads: the PE's thread. If another thread drops the last reference, the PE's thread releases the memory.
// Invariants: an array and its views are in C order. The memory comes from the PE's memory layer. It is released
// when no array and no operation uses it any more.
#pragma once

#include <memory>

#include "weft/memory/buffer.h"

#include "buffers/arrays/array_form.h"
#include "buffers/arrays/buffer_request.h"
#include "codec/landed_memory.h"
#include "support/support.h"

namespace weft::python {

struct DeviceArrayObject {
  PyObject_HEAD ArrayForm form;
  memory::Buffer memory;
  std::shared_ptr<void> owner;
  LandedMemory* landed;  // the owner, if the memory came with a message; else null
  Ref stream_keeper;
};

// weft.DeviceArray. init_device_array() stores it.
extern PyTypeObject* device_array_type;
inline bool is_device_array(PyObject* object) { return Py_TYPE(object) == device_array_type; }
// REQUIRES: is_device_array(object).
inline DeviceArrayObject* as_device_array(PyObject* object) {
  return reinterpret_cast<DeviceArrayObject*>(object);
}

// A new array with memory of its own. Throws base::Error if there is no such memory.
Ref allocate_device_array(ArrayForm form, memory::Place place);
// An array over memory that has landed on this PE. `landed` is null for an array without elements.
Ref make_device_array(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<LandedMemory> landed);
// An array over memory that `owner` keeps.
Ref make_device_array_over(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<void> owner);
// A view of a part of the array's memory, in the given form.
Ref make_view(DeviceArrayObject* array, ArrayForm form, std::size_t offset_bytes);
// A view of the same memory with another stream. The view keeps `keeper`, which owns the stream.
Ref make_view_on(DeviceArrayObject* array, memory::StreamHandle stream, Ref keeper);

// The work of buffer_of for a DeviceArray. REQUIRES: is_device_array(request.object).
ObjectBuffer device_array_buffer(const BufferRequest& request);

}  // namespace weft::python
