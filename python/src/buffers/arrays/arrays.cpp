#include "buffers/arrays/arrays.h"

#include <utility>

#include "buffers/arrays/dtype.h"
#include "buffers/arrays/element_types.h"
#include "buffers/arrays/numpy_api.h"
#include "buffers/arrays/numpy_loading.h"

namespace weft::python {

namespace {

PyArrayObject* as_array(PyObject* object) { return reinterpret_cast<PyArrayObject*>(object); }

// An array over `data`, or with memory of its own if `data` is null. Throws PythonError if NumPy cannot make it.
Ref new_array(const ArrayForm& form, void* data, bool fortran_order) {
  static_assert(sizeof(npy_intp) == sizeof(std::int64_t));
  int flags = fortran_order ? NPY_ARRAY_F_CONTIGUOUS : 0;
  if (data != nullptr) flags = fortran_order ? NPY_ARRAY_FARRAY : NPY_ARRAY_CARRAY;
  Ref dtype = form.dtype;  // PyArray_NewFromDescr steals this reference
  return checked(PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(dtype.release()), static_cast<int>(form.extents.size()),
      const_cast<npy_intp*>(form.extents.data()), nullptr, data, flags, nullptr));
}

}  // namespace

bool is_plain_array(PyObject* object) {
  if (!numpy_is_loaded() || !PyArray_CheckExact(object)) return false;
  PyArrayObject* const array = as_array(object);
  if (is_number_type(PyArray_TYPE(array))) return PyArray_ISNOTSWAPPED(array);
  return element_type_of(reinterpret_cast<PyObject*>(PyArray_DESCR(array))) != nullptr;
}

bool is_array_of_numbers(PyObject* object) {
  if (!numpy_is_loaded() || !PyArray_CheckExact(object)) return false;
  const int type_number = PyArray_TYPE(as_array(object));
  return is_number_type(type_number) && type_number != NPY_BOOL;
}

bool is_sole_owner(PyObject* object) {
  return is_plain_array(object) && Py_REFCNT(object) == 1 && PyArray_BASE(as_array(object)) == nullptr;
}

Ref make_array(const ArrayForm& form, bool fortran_order) { return new_array(form, nullptr, fortran_order); }

Ref make_array_over(const ArrayForm& form, void* data, Ref owner, bool fortran_order) {
  Ref array = new_array(form, data, fortran_order);
  checked(PyArray_SetBaseObject(as_array(array.get()), owner.release()));
  return array;
}

namespace {

ArrayForm form_of(PyArrayObject* array) {
  ArrayForm form;
  form.dtype = Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(array)));
  form.extents.assign(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
  form.size_bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  return form;
}

}  // namespace

namespace {

void expect_usable(const BufferRequest& request, PyArrayObject* array) {
  const bool is_written = request.access == Access::kWrite;
  if (is_written && !PyArray_ISWRITEABLE(array))
    unusable(request, "that is read-only; pass a writable array");
  if (PyDataType_REFCHK(PyArray_DESCR(array))) {
    unusable(request, "of Python objects, which are no plain bytes; send such values with an entry method");
  }
}

}  // namespace

bool find_strided_array_memory(const BufferRequest& request, ObjectBuffer& found,
                               std::vector<std::int64_t>& strides) {
  if (!has_numpy() || !PyArray_Check(request.object)) return false;
  PyArrayObject* const array = as_array(request.object);
  if (PyArray_IS_C_CONTIGUOUS(array)) return false;
  expect_usable(request, array);
  strides.assign(PyArray_STRIDES(array), PyArray_STRIDES(array) + PyArray_NDIM(array));
  found.memory.data = PyArray_DATA(array);
  found.memory.size_bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  found.keeper = Ref::borrow(request.object);
  if (request.form != nullptr) *request.form = form_of(array);
  return true;
}

bool find_array_memory(const BufferRequest& request, ObjectBuffer& found) {
  if (!has_numpy() || !PyArray_Check(request.object)) return false;
  PyArrayObject* array = as_array(request.object);
  if (!PyArray_IS_C_CONTIGUOUS(array)) not_contiguous(request, PyArray_IS_F_CONTIGUOUS(array));
  expect_usable(request, array);
  found.memory.data = PyArray_DATA(array);
  found.memory.size_bytes = static_cast<std::size_t>(PyArray_NBYTES(array));
  found.keeper = Ref::borrow(request.object);
  if (request.form != nullptr) *request.form = form_of(array);
  return true;
}

}  // namespace weft::python
