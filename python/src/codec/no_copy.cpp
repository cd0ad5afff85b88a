#include "codec/no_copy.h"

#include <new>

#include "weft/base/error.h"

#include "support/errors.h"

namespace weft::python {

namespace {

struct NoCopyObject {
  PyObject_HEAD Ref array;
};

PyTypeObject* type = nullptr;

void deallocate(PyObject* self) {
  reinterpret_cast<NoCopyObject*>(self)->array.~Ref();
  free_object(self);
}

PyObject* no_pickle(PyObject*, PyObject*) {
  return guarded([]() -> PyObject* {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        "the result of weft.nocopy can only be an argument of an entry method: on its own, or in a "
        "tuple, list or dict");
  });
}

PyMethodDef methods[] = {{"__reduce__", &no_pickle, METH_NOARGS, nullptr}, {}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"weft._NoCopy", sizeof(NoCopyObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_no_copy(PyObject* module) { type = add_type(module, spec); }

Ref make_no_copy(Ref array) {
  Ref object = checked(PyType_GenericAlloc(type, 0));
  new (&reinterpret_cast<NoCopyObject*>(object.get())->array) Ref(std::move(array));
  return object;
}

PyTypeObject* no_copy_type() { return type; }

bool is_no_copy(PyObject* object) { return Py_TYPE(object) == type; }

PyObject* no_copy_array(PyObject* object) { return reinterpret_cast<NoCopyObject*>(object)->array.get(); }

}  // namespace weft::python
