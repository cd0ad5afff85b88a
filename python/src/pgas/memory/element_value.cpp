#include "pgas/memory/element_value.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "buffers/arrays/array_form.h"
#include "buffers/arrays/arrays.h"
#include "buffers/arrays/dtype.h"
#include "buffers/arrays/numpy_api.h"
#include "buffers/arrays/numpy_loading.h"
#include "buffers/object_buffer.h"

namespace weft::python {

namespace {

template <class T>
void write(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}
template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

ElementCode sized_code(std::size_t size_bytes, ElementCode one_byte) {
  const auto first = static_cast<std::uint8_t>(one_byte);
  switch (size_bytes) {
    case 1:
      return one_byte;
    case 2:
      return static_cast<ElementCode>(first + 1);
    case 4:
      return static_cast<ElementCode>(first + 2);
    case 8:
      return static_cast<ElementCode>(first + 3);
    default:
      return ElementCode::kOther;
  }
}

// An int, or an object with __index__. Throws PythonError for a float and for a number outside of the range.
template <class T>
T integer(PyObject* value) {
  const Ref index = checked(PyNumber_Index(value));
  if constexpr (std::numeric_limits<T>::is_signed) {
    const long long number = PyLong_AsLongLong(index.get());
    if (number == -1 && PyErr_Occurred() != nullptr) throw PythonError();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  } else {
    const unsigned long long number = PyLong_AsUnsignedLongLong(index.get());
    if (number == ~0ULL && PyErr_Occurred() != nullptr) throw PythonError();
    if (std::in_range<T>(number)) return static_cast<T>(number);
  }
  PyErr_SetString(PyExc_OverflowError, "it is out of the range of the type");
  throw PythonError();
}

// Throws PythonError for what is no number, for a number that is finite and out of the range of T, and for an int that T does
// not hold. Other numbers are rounded.
template <class T>
T real(PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred() != nullptr) throw PythonError();
  const T stored = static_cast<T>(number);
  if (std::isfinite(number) && !std::isfinite(stored)) {
    PyErr_SetString(PyExc_OverflowError, "it is out of the range of the type");
    throw PythonError();
  }
  if (PyLong_Check(value) != 0 && std::abs(number) >= std::ldexp(1.0, std::numeric_limits<T>::digits)) {
    const Ref rounded = checked(PyFloat_FromDouble(stored));
    const int is_equal = PyObject_RichCompareBool(value, rounded.get(), Py_EQ);
    checked(is_equal);
    if (is_equal == 0) {
      PyErr_SetString(PyExc_OverflowError, "the type would round it; give a float to have it rounded");
      throw PythonError();
    }
  }
  return stored;
}

// A bool, 0 or 1, or a value of NumPy.
void expect_truth(PyObject* value) {
  const bool is_numpy = has_numpy() && PyArray_CheckScalar(value);
  if (PyBool_Check(value) != 0 || is_numpy || integer<std::uint8_t>(value) <= 1) return;
  PyErr_SetString(PyExc_OverflowError, "it is neither 0 nor 1");
  throw PythonError();
}

// NumPy would cut it.
void expect_text_fits(PyObject* value, const Ref& dtype) {
  const char letter = dtype_letter(dtype);
  if (letter != 'S' && letter != 'U') return;
  const std::size_t most = item_size_bytes(dtype) / (letter == 'U' ? 4 : 1);
  std::size_t length = 0;
  if (PyUnicode_Check(value) != 0) length = static_cast<std::size_t>(PyUnicode_GET_LENGTH(value));
  if (PyBytes_Check(value) != 0) length = static_cast<std::size_t>(PyBytes_GET_SIZE(value));
  if (length <= most) return;
  PyErr_Format(PyExc_ValueError, "it has %zu characters, and the type has %zu", length, most);
  throw PythonError();
}

// By NumPy, through an array of one element.
void store_other(PyObject* value, const Ref& dtype, std::byte* to) {
  expect_text_fits(value, dtype);
  ArrayForm form{dtype, {}, item_size_bytes(dtype)};
  const Ref cell = make_array(form);
  auto* const array = reinterpret_cast<PyArrayObject*>(cell.get());
  std::memset(PyArray_DATA(array), 0, form.size_bytes);
  checked(PyArray_SETITEM(array, static_cast<char*>(PyArray_DATA(array)), value));
  std::memcpy(to, PyArray_DATA(array), form.size_bytes);
}

}  // namespace

ElementCode element_code(const Ref& dtype) {
  if (!is_native_byte_order(dtype)) return ElementCode::kOther;
  const std::size_t size_bytes = item_size_bytes(dtype);
  switch (dtype_letter(dtype)) {
    case 'b':
      return ElementCode::kBool;
    case 'i':
      return sized_code(size_bytes, ElementCode::kInt8);
    case 'u':
      return sized_code(size_bytes, ElementCode::kUint8);
    case 'f':
      if (size_bytes == sizeof(float)) return ElementCode::kFloat;
      return size_bytes == sizeof(double) ? ElementCode::kDouble : ElementCode::kOther;
    default:
      return ElementCode::kOther;
  }
}

void store_element(PyObject* value, ElementCode code, const Ref& dtype, std::byte* to) {
  switch (code) {
    case ElementCode::kInt8:
      return write(to, integer<std::int8_t>(value));
    case ElementCode::kInt16:
      return write(to, integer<std::int16_t>(value));
    case ElementCode::kInt32:
      return write(to, integer<std::int32_t>(value));
    case ElementCode::kInt64:
      return write(to, integer<std::int64_t>(value));
    case ElementCode::kUint8:
      return write(to, integer<std::uint8_t>(value));
    case ElementCode::kUint16:
      return write(to, integer<std::uint16_t>(value));
    case ElementCode::kUint32:
      return write(to, integer<std::uint32_t>(value));
    case ElementCode::kUint64:
      return write(to, integer<std::uint64_t>(value));
    case ElementCode::kFloat:
      return write(to, real<float>(value));
    case ElementCode::kDouble:
      return write(to, real<double>(value));
    case ElementCode::kBool:
      expect_truth(value);
      return store_other(value, dtype, to);
    case ElementCode::kOther:
      return store_other(value, dtype, to);
  }
}

Ref load_element(const std::byte* from, ElementCode code, const Ref& dtype) {
  switch (code) {
    case ElementCode::kBool:
      return Ref::borrow(read<std::uint8_t>(from) != 0 ? Py_True : Py_False);
    case ElementCode::kInt8:
      return checked(PyLong_FromLong(read<std::int8_t>(from)));
    case ElementCode::kInt16:
      return checked(PyLong_FromLong(read<std::int16_t>(from)));
    case ElementCode::kInt32:
      return checked(PyLong_FromLong(read<std::int32_t>(from)));
    case ElementCode::kInt64:
      return checked(PyLong_FromLongLong(read<std::int64_t>(from)));
    case ElementCode::kUint8:
      return checked(PyLong_FromLong(read<std::uint8_t>(from)));
    case ElementCode::kUint16:
      return checked(PyLong_FromLong(read<std::uint16_t>(from)));
    case ElementCode::kUint32:
      return checked(PyLong_FromUnsignedLong(read<std::uint32_t>(from)));
    case ElementCode::kUint64:
      return checked(PyLong_FromUnsignedLongLong(read<std::uint64_t>(from)));
    case ElementCode::kFloat:
      return checked(PyFloat_FromDouble(read<float>(from)));
    case ElementCode::kDouble:
      return checked(PyFloat_FromDouble(read<double>(from)));
    case ElementCode::kOther:
      break;
  }
  return checked(
      PyArray_Scalar(const_cast<std::byte*>(from), reinterpret_cast<PyArray_Descr*>(dtype.get()), nullptr));
}

bool is_one_element(PyObject* value) {
  if (PyFloat_CheckExact(value) != 0 || PyLong_CheckExact(value) != 0) return true;
  if (has_numpy()) {
    if (PyArray_CheckScalar(value)) return true;  // also an array without dimensions
    if (PyArray_Check(value)) return false;
  }
  if (is_device_object(value)) return false;
  return PyTuple_Check(value) != 0 || PyObject_CheckBuffer(value) == 0;
}

}  // namespace weft::python
