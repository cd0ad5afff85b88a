// weft.pgas.GlobalPointer: a global pointer with an element type.
//
// Threads: the PE's thread; pointers themselves never change.
#pragma once

#include <cstddef>
#include <string>

#include "weft/rma/global_ptr.h"

#include "buffers/arrays/array_form.h"
#include "engine/engine.h"
#include "pgas/memory/element_value.h"
#include "support/support.h"

namespace weft::python {

void init_global_pointer(PyObject* module);

struct GlobalPointerObject {
  PyObject_HEAD rma::GlobalAddress address;
  Ref dtype;  // a numpy.dtype without Python objects
  std::size_t item_bytes;
  ElementCode code;
};

bool is_global_pointer(PyObject* object);
// REQUIRES: is_global_pointer(object).
inline GlobalPointerObject* as_global_pointer(PyObject* object) {
  return reinterpret_cast<GlobalPointerObject*>(object);
}
// Throws base::Error, whose message begins with `use`, for another object.
GlobalPointerObject* global_pointer_from(PyObject* object, const char* use);

Ref make_global_pointer(const rma::GlobalAddress& address, Ref dtype);
// "float64 at byte 96 of segment 3 of PE 2 (host)".
std::string pointer_text(const GlobalPointerObject* pointer);

// Writes the bytes of an element as which the pointer's type stores the value. Throws base::Error, whose message begins with `use`
// and names the pointer, if the type cannot hold it.
void store_for(const GlobalPointerObject* pointer, PyObject* value, std::byte* to, const char* use);

// An array over the memory where this PE or its device reaches it: a NumPy array, or a weft.DeviceArray. The array keeps the
// memory. None if this PE does not reach it.
Ref reached_array(Engine& engine, const rma::GlobalAddress& address, ArrayForm form);

}  // namespace weft::python
