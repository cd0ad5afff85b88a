#include "support/support.h"

#include <cstring>

namespace weft::python {

Ref PythonError::take() {
#if PY_VERSION_HEX >= 0x030c0000
  return Ref::steal(PyErr_GetRaisedException());
#else
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != nullptr) PyException_SetTraceback(value, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  return Ref::steal(value);
#endif
}

std::string_view text_of(PyObject* str) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(str, &size);
  if (data == nullptr) throw PythonError();
  return {data, static_cast<std::size_t>(size)};
}

std::string readable(PyObject* object) {
  Ref text = Ref::steal(object == nullptr ? nullptr : PyObject_Str(object));
  Py_ssize_t size = 0;
  const char* data = text ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
  if (data != nullptr) return {data, static_cast<std::size_t>(size)};
  PyErr_Clear();
  if (!text) return "(no text)";
  // Lone surrogates, such as those of a file name that is not UTF-8.
  const Ref bytes = Ref::steal(PyUnicode_AsEncodedString(text.get(), "utf-8", "backslashreplace"));
  if (!bytes) {
    PyErr_Clear();
    return "(no text)";
  }
  return {PyBytes_AS_STRING(bytes.get()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get()))};
}

std::string type_name_of(PyObject* object) {
  return name_of_type(reinterpret_cast<PyObject*>(Py_TYPE(object)));
}

std::string name_of_type(PyObject* type) {
  Ref module = Ref::steal(PyObject_GetAttrString(type, "__module__"));
  Ref name = Ref::steal(PyObject_GetAttrString(type, "__qualname__"));
  if (!module || !name) {
    PyErr_Clear();
    return "(a type without a name)";
  }
  std::string in = readable(module.get());
  return in == "builtins" ? readable(name.get()) : in + "." + readable(name.get());
}

Ref make_text(std::string_view text) {
  return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

Ref attribute(PyObject* object, const char* name) { return checked(PyObject_GetAttrString(object, name)); }

Ref import_module(const char* name) { return checked(PyImport_ImportModule(name)); }

Ref import_from(const char* module, const char* name) { return attribute(import_module(module).get(), name); }

Arguments::Arguments(const char* function, std::initializer_list<const char*> names, std::size_t num_required,
                     PyObject* const* values, Py_ssize_t num_positional, PyObject* keyword_names) {
  auto given = static_cast<std::size_t>(num_positional);
  if (given > names.size()) {
    PyErr_Format(PyExc_TypeError, "%s takes at most %zu arguments, not %zu", function, names.size(), given);
    throw PythonError();
  }
  for (std::size_t i = 0; i < given; ++i) found[i] = values[i];
  Py_ssize_t num_keywords = keyword_names == nullptr ? 0 : PyTuple_GET_SIZE(keyword_names);
  for (Py_ssize_t k = 0; k < num_keywords; ++k) {
    std::string_view keyword = text_of(PyTuple_GET_ITEM(keyword_names, k));
    std::size_t which = 0;
    while (which < names.size() && keyword != names.begin()[which]) ++which;
    if (which == names.size() || found[which] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s got %s argument '%U'", function,
                   which == names.size() ? "an unknown keyword" : "twice the",
                   PyTuple_GET_ITEM(keyword_names, k));
      throw PythonError();
    }
    found[which] = values[given + static_cast<std::size_t>(k)];
  }
  for (std::size_t i = 0; i < num_required; ++i) {
    if (found[i] != nullptr) continue;
    PyErr_Format(PyExc_TypeError, "%s needs the argument '%s'", function, names.begin()[i]);
    throw PythonError();
  }
}

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec, PyTypeObject* base) {
  Ref bases = base == nullptr ? Ref() : checked(PyTuple_Pack(1, base));
  Ref type = checked(PyType_FromModuleAndSpec(module, &spec, bases.get()));
  const char* dot = std::strrchr(spec.name, '.');
  checked(PyModule_AddObjectRef(module, dot == nullptr ? spec.name : dot + 1, type.get()));
  return reinterpret_cast<PyTypeObject*>(type.get());  // the module keeps it
}

void add_functions(PyObject* module, PyMethodDef* functions) {
  checked(PyModule_AddFunctions(module, functions));
}

#ifdef Py_LIMITED_API
ViewedBuffer::ViewedBuffer(PyObject* memoryview) : buffer_(&own_) {
  checked(PyObject_GetBuffer(memoryview, &own_, PyBUF_FULL_RO));
}
ViewedBuffer::~ViewedBuffer() { PyBuffer_Release(&own_); }

PyTypeObject* type_of_functions() {
  static constinit Imported type("types", "FunctionType");
  return reinterpret_cast<PyTypeObject*>(type.get());
}
PyTypeObject* type_of_coroutines() {
  static constinit Imported type("types", "CoroutineType");
  return reinterpret_cast<PyTypeObject*>(type.get());
}
PyTypeObject* type_of_generators() {
  static constinit Imported type("types", "GeneratorType");
  return reinterpret_cast<PyTypeObject*>(type.get());
}
#else
ViewedBuffer::ViewedBuffer(PyObject* memoryview) : buffer_(PyMemoryView_GET_BUFFER(memoryview)) {}
#endif

void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
#ifdef Py_LIMITED_API
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
#else
  type->tp_free(self);
#endif
  Py_DECREF(type);
}

}  // namespace weft::python
