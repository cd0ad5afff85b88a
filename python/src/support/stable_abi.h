// CPython's macros and functions that its stable ABI does not have, made of what it has. Included by support.h alone.
//
// With Py_LIMITED_API (the wheel cp312-abi3) one extension serves every Python from 3.12 on: the layout of Python's objects is
// unknown to it, so each access is a call. Built for one Python, the extension uses CPython's own macros, which are faster.
#pragma once

#ifdef Py_LIMITED_API

#include <Python.h>

// Public functions of CPython 3.12 to 3.14 that the stable ABI does not promise; abi3audit therefore rejects the wheel. Weak: where a later
// Python lacks one, it is null. User code then runs without contexts of its own, or the line of a setter is looked up at each call. No
// test covers that, because every Python so far has the functions.
extern "C" {
[[gnu::weak]] PyObject* PyContext_CopyCurrent();
[[gnu::weak]] int PyContext_Enter(PyObject*);
[[gnu::weak]] int PyContext_Exit(PyObject*);
[[gnu::weak]] int PyFrame_GetLasti(PyFrameObject*);
}

namespace weft::python {

// types.FunctionType and so on: the type objects themselves are not in the stable ABI. Throws PythonError.
PyTypeObject* type_of_functions();
PyTypeObject* type_of_coroutines();
PyTypeObject* type_of_generators();

}  // namespace weft::python

// NOLINTBEGIN(readability-identifier-naming): CPython's names.
inline Py_ssize_t PyTuple_GET_SIZE(PyObject* tuple) { return PyTuple_Size(tuple); }
inline PyObject* PyTuple_GET_ITEM(PyObject* tuple, Py_ssize_t i) { return PyTuple_GetItem(tuple, i); }
inline void PyTuple_SET_ITEM(PyObject* tuple, Py_ssize_t i, PyObject* item) {
  PyTuple_SetItem(tuple, i, item);
}
inline Py_ssize_t PyList_GET_SIZE(PyObject* list) { return PyList_Size(list); }
inline PyObject* PyList_GET_ITEM(PyObject* list, Py_ssize_t i) { return PyList_GetItem(list, i); }
inline void PyList_SET_ITEM(PyObject* list, Py_ssize_t i, PyObject* item) { PyList_SetItem(list, i, item); }
inline Py_ssize_t PyDict_GET_SIZE(PyObject* dict) { return PyDict_Size(dict); }
inline Py_ssize_t PyBytes_GET_SIZE(PyObject* bytes) { return PyBytes_Size(bytes); }
inline char* PyBytes_AS_STRING(PyObject* bytes) { return PyBytes_AsString(bytes); }
inline Py_ssize_t PyUnicode_GET_LENGTH(PyObject* text) { return PyUnicode_GetLength(text); }
// Flags of code objects, as the module inspect documents them.
constexpr int CO_VARARGS = 0x04;
constexpr int CO_COROUTINE = 0x80;
inline double PyFloat_AS_DOUBLE(PyObject* number) { return PyFloat_AsDouble(number); }
inline PyObject* PyObject_CallOneArg(PyObject* callable, PyObject* argument) {
  PyObject* arguments[] = {nullptr, argument};  // the callee may use the first place
  return PyObject_Vectorcall(callable, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}
inline void Py_XSETREF(PyObject*& place, PyObject* object) {
  PyObject* const old = place;
  place = object;
  Py_XDECREF(old);  // may run code that reads the place
}
inline bool PyFunction_Check(PyObject* object) {
  return Py_TYPE(object) == weft::python::type_of_functions();
}
inline bool PyCoro_CheckExact(PyObject* object) {
  return Py_TYPE(object) == weft::python::type_of_coroutines();
}
inline bool PyGen_Check(PyObject* object) {
  return PyObject_TypeCheck(object, weft::python::type_of_generators()) != 0;
}
// NOLINTEND(readability-identifier-naming)

#endif
