#include "chare/classes/indices.h"

#include <climits>
#include <optional>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::python {

int coordinate(PyObject* object) {
  Ref number = Ref::steal(PyNumber_Index(object));
  if (!number) {
    if (PyIndex_Check(object) != 0) throw PythonError();  // raised by the program's __index__
    PyErr_Clear();
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("an index or extent is a whole number, not a {}", type_name_of(object)));
  }
  int overflow = 0;
  long value = PyLong_AsLongAndOverflow(number.get(), &overflow);
  if (overflow != 0 || value < INT_MIN || value > INT_MAX) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      base::format("an index or extent is less than 2^31; {} is not", readable(object)));
  }
  return static_cast<int>(value);
}

Coordinates::Coordinates(PyObject* object) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) {
    values[0] = coordinate(object);
    return;
  }
  Ref sequence = checked(PySequence_Fast(object, "not a sequence"));
  Py_ssize_t given = PySequence_Fast_GET_SIZE(sequence.get());
  if (given < 1 || given > chare::kMaxDimensions) {
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("an index or shape has 1 to {} dimensions, not {}", chare::kMaxDimensions, given));
  }
  count = static_cast<int>(given);
  for (int d = 0; d < count; ++d) {
    values[static_cast<std::size_t>(d)] = coordinate(PySequence_Fast_GET_ITEM(sequence.get(), d));
  }
}

namespace {

std::optional<std::uint64_t> linear_if_inside(const chare::Shape& shape, const Coordinates& coordinates) {
  bool inside = coordinates.count == shape.num_dimensions();
  std::uint64_t linear = 0;
  for (int d = 0; inside && d < coordinates.count; ++d) {
    int at = coordinates.values[static_cast<std::size_t>(d)];
    inside = at >= 0 && at < shape.extent(d);
    linear = linear * static_cast<std::uint64_t>(shape.extent(d)) + static_cast<std::uint64_t>(at);
  }
  return inside ? std::optional(linear) : std::nullopt;
}

}  // namespace

std::uint64_t linear_index(const chare::Shape& shape, PyObject* index, const std::string& name) {
  if (PyLong_CheckExact(index) && shape.num_dimensions() == 1) {
    long i = PyLong_AsLong(index);
    if (i >= 0 && static_cast<std::uint64_t>(i) < shape.size()) return static_cast<std::uint64_t>(i);
    PyErr_Clear();
  }
  if (const auto linear = linear_if_inside(shape, Coordinates(index))) return *linear;
  throw base::Error(
      base::StatusCode::kOutOfRange,
      base::format("index {} is outside {} of shape {}; each coordinate counts from 0 to its extent - 1",
                   readable(index), name, readable(shape_object(shape).get())));
}

std::optional<std::uint64_t> linear_index_if_any(const chare::Shape& shape, PyObject* index) {
  const auto is_number = [](PyObject* one) { return PyIndex_Check(one) != 0; };
  bool is_index = is_number(index);
  if (PyTuple_Check(index) != 0) {
    is_index = PyTuple_GET_SIZE(index) >= 1 && PyTuple_GET_SIZE(index) <= chare::kMaxDimensions;
    for (Py_ssize_t i = 0; is_index && i < PyTuple_GET_SIZE(index); ++i) {
      is_index = is_number(PyTuple_GET_ITEM(index, i));
    }
  }
  if (!is_index) return std::nullopt;
  try {
    return linear_if_inside(shape, Coordinates(index));
  } catch (const base::Error& error) {
    if (error.code() == base::StatusCode::kOutOfRange) return std::nullopt;  // a coordinate of 2^31 or more
    throw;
  }
}

Ref index_object(const chare::Index& index) {
  if (index.num_dimensions() == 1) return checked(PyLong_FromLong(index[0]));
  Ref tuple = checked(PyTuple_New(index.num_dimensions()));
  for (int d = 0; d < index.num_dimensions(); ++d) {
    PyTuple_SET_ITEM(tuple.get(), d, checked(PyLong_FromLong(index[d])).release());
  }
  return tuple;
}

Ref shape_object(const chare::Shape& shape) {
  Ref tuple = checked(PyTuple_New(shape.num_dimensions()));
  for (int d = 0; d < shape.num_dimensions(); ++d) {
    PyTuple_SET_ITEM(tuple.get(), d, checked(PyLong_FromLong(shape.extent(d))).release());
  }
  return tuple;
}

}  // namespace weft::python
