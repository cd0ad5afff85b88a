#include "buffers/arrays/read_only.h"

#include <cstddef>
#include <unordered_map>

#include "buffers/arrays/numpy_api.h"
#include "buffers/arrays/numpy_loading.h"

namespace weft::python {

namespace {

constexpr const char* kCapsuleName = "weft.read_only_array";

// The arrays that are read-only because they are being sent, with the number of sends of each. The capsules own
// the references to the arrays.
std::unordered_map<PyObject*, std::size_t> sends;

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

void end(PyObject* capsule) {
  auto* array = static_cast<PyObject*>(PyCapsule_GetPointer(capsule, kCapsuleName));
  if (auto found = sends.find(array); --found->second == 0) {
    sends.erase(found);
    PyArray_ENABLEFLAGS(as_array(array), NPY_ARRAY_WRITEABLE);
  }
  Py_DECREF(array);
}

}  // namespace

Ref keep_read_only(Ref keeper) {
  if (!has_numpy() || PyArray_Check(keeper.get()) == 0) return keeper;
  const auto found = sends.find(keeper.get());
  const bool is_writable = PyArray_ISWRITEABLE(as_array(keeper.get())) != 0;
  // The program's own read-only array stays read-only after the send.
  if (found == sends.end() && !is_writable) return keeper;
  Ref capsule = checked(PyCapsule_New(keeper.get(), kCapsuleName, &end));
  ++sends[keeper.get()];
  PyArray_CLEARFLAGS(as_array(keeper.get()), NPY_ARRAY_WRITEABLE);
  static_cast<void>(keeper.release());  // the capsule owns the reference
  return capsule;
}

}  // namespace weft::python
