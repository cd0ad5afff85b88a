// From handles of the program to objects and back.
//
// A handle is a small number of mpi.h, which stands for a predefined object, or the address of an Object.
#pragma once

#include <cstdint>
#include <string>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/addresses.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/objects/object.h"

namespace weft::mpi {

template <class Handle>
std::uintptr_t handle_number(Handle handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

// A null handle counts as predefined.
template <class Handle>
bool is_predefined(Handle handle) {
  return handle_number(handle) < kFirstAddress;
}

// The object that the handle refers to. Null if the handle is predefined, or its object is of another kind.
template <class T, class Handle>
T* object_of(Handle handle, ObjectKind kind) {
  if (is_predefined(handle)) return nullptr;
  Object* const object = reinterpret_cast<Object*>(handle);
  return object->kind() == kind ? static_cast<T*>(object) : nullptr;
}

template <class Handle>
Handle handle_of(Object* object) {
  return reinterpret_cast<Handle>(object);
}

// Gives the reference to the program.
template <class Handle, class T>
Handle make_handle(Ref<T> object) {
  return handle_of<Handle>(object.leave());
}

}  // namespace weft::mpi
