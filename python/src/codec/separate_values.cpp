#include "codec/separate_values.h"

#include <cstdint>
#include <limits>
#include <new>

#include "weft/base/error.h"

#include "base/format.h"
#include "codec/encoder.h"
#include "codec/forms.h"
#include "support/errors.h"

namespace weft::python {

namespace {

struct SeparateValuesObject {
  PyObject_HEAD Ref list;
};

PyTypeObject* type = nullptr;

void deallocate(PyObject* self) {
  reinterpret_cast<SeparateValuesObject*>(self)->list.~Ref();
  free_object(self);
}

bool encode(Encoder& encoder, PyObject* object) {
  const Ref list = reinterpret_cast<SeparateValuesObject*>(object)->list;
  const Py_ssize_t size = PyList_GET_SIZE(list.get());
  encoder.tag(ValueTag::kList);
  encoder.number(static_cast<std::uint32_t>(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    if (i >= PyList_GET_SIZE(list.get())) {  // changed by user code that pickling called
      PyErr_SetString(PyExc_RuntimeError, "a list changed its size while it was being sent");
      throw PythonError();
    }
    const Ref value = Ref::borrow(PyList_GET_ITEM(list.get(), i));
    encoder.separate_value(value.get());
  }
  return true;
}

PyObject* separate(PyObject*, PyObject* values) {
  return guarded([values]() -> PyObject* {
    if (PyList_CheckExact(values) == 0 ||
        PyList_GET_SIZE(values) > std::numeric_limits<std::uint32_t>::max()) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("_separate takes a list of less than 2**32 values, not a {}", type_name_of(values)));
    }
    Ref object = checked(PyType_GenericAlloc(type, 0));
    new (&reinterpret_cast<SeparateValuesObject*>(object.get())->list) Ref(Ref::borrow(values));
    return object.release();
  });
}

PyMethodDef functions[] = {
    {"_separate", &separate, METH_O, nullptr},
    {},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(&deallocate)},
    {0, nullptr},
};
PyType_Spec spec = {"weft._SeparateValues", sizeof(SeparateValuesObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

void init_separate_values(PyObject* module) {
  type = add_type(module, spec);
  add_encoding(type, &encode, Nature::kData);
  add_functions(module, functions);
}

}  // namespace weft::python
