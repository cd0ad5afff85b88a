// weft.DeviceArray: an array in memory of any kind, host memory included.
//
// Always in C order; its views are too. The memory comes from the PE's memory layer and goes back there with
// the last array and the last operation that uses it.
#pragma once

#include <memory>

#include "weft/memory/buffer.h"

#include "buffers/array_form.h"
#include "buffers/attached.h"
#include "buffers/object_buffer.h"
#include "support/support.h"

namespace weft::python {

void init_device_array(PyObject* module);

bool is_device_array(PyObject* object);
// REQUIRES: is_device_array(object).
const ArrayForm& device_array_form(PyObject* object);
const memory::Buffer& device_array_memory(PyObject* object);

// One over memory that has landed here; null for one without elements.
Ref make_device_array(ArrayForm form, const memory::Buffer& memory, std::shared_ptr<LandedMemory> landed);

// As buffer_of, for a DeviceArray; false for other objects.
bool find_device_array_memory(const BufferRequest& request, ObjectBuffer& found);

}  // namespace weft::python
