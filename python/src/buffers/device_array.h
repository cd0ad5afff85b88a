// weft.DeviceArray: an array in memory of any kind, host memory included.
//
// Always in C order, and so are its views. The memory comes from the PE's memory layer, and returns there with
// the last array and the last operation that uses it. This file is the object: its memory and its form. What
// Python sees of it is in device_array_type.*, copies are in device_array_copies.*, and what other libraries see
// in device_array_exports.*.
#pragma once

#include <memory>

#include "weft/memory/buffer.h"

#include "buffers/array_form.h"
#include "buffers/buffer_request.h"
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

// weft.DeviceArray, once, when the extension is initialised.
void set_device_array_type(PyTypeObject* type);
PyTypeObject* device_array_type();
bool is_device_array(PyObject* object);
// REQUIRES: is_device_array(object).
inline DeviceArrayObject* as_device_array(PyObject* object) {
  return reinterpret_cast<DeviceArrayObject*>(object);
}

// A new array in memory of its own. Throws base::Error if there is no such memory.
Ref allocate_device_array(ArrayForm form, memory::Place place);
// One over memory that has landed here; null for one without elements.
Ref make_device_array(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<LandedMemory> landed);
// A part of the same memory, or the same part in another form.
Ref make_view(DeviceArrayObject* array, ArrayForm form, std::size_t offset_bytes);
// The same memory with another stream, which `keeper` keeps.
Ref make_view_on(DeviceArrayObject* array, memory::StreamHandle stream, Ref keeper);

// As buffer_of, for a DeviceArray; false for other objects.
bool find_device_array_memory(const BufferRequest& request, ObjectBuffer& found);

}  // namespace weft::python
