#include "buffers/arrays/array_form.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dtype.h"

namespace weft::python {

namespace {

std::int64_t extent_from(PyObject* object, const char* use) {
  Ref number = Ref::steal(PyNumber_Index(object));
  if (!number) {
    PyErr_Clear();
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{}: an extent is a whole number, not a {}", use, type_name_of(object)));
  }
  int overflow = 0;
  long long extent = PyLong_AsLongLongAndOverflow(number.get(), &overflow);
  if (overflow != 0 || extent < 0) {
    throw base::Error(
        base::StatusCode::kOutOfRange,
        base::format("{}: an extent counts from 0 to 2^63 - 1; {} does not", use, readable(number.get())));
  }
  return extent;
}

}  // namespace

std::vector<std::int64_t> extents_from(PyObject* shape, const char* use) {
  if (PyTuple_Check(shape) == 0 && PyList_Check(shape) == 0) return {extent_from(shape, use)};
  Ref sequence = checked(PySequence_Tuple(shape));
  std::vector<std::int64_t> extents;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sequence.get()); ++i) {
    extents.push_back(extent_from(PyTuple_GET_ITEM(sequence.get(), i), use));
  }
  if (extents.size() > 32) {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{}: an array has at most 32 dimensions, not {}", use, extents.size()));
  }
  return extents;
}

bool total_bytes(const std::vector<std::int64_t>& extents, std::size_t item_size_bytes,
                 std::size_t& size_bytes) {
  size_bytes = item_size_bytes;
  for (std::int64_t extent : extents) {
    if (extent == 0) {
      size_bytes = 0;
      return true;
    }
  }
  for (std::int64_t extent : extents) {
    if (__builtin_mul_overflow(size_bytes, static_cast<std::size_t>(extent), &size_bytes)) return false;
  }
  return size_bytes <= static_cast<std::size_t>(PY_SSIZE_T_MAX);
}

ArrayForm make_form(Ref dtype, std::vector<std::int64_t> extents) {
  ArrayForm form;
  if (!total_bytes(extents, item_size_bytes(dtype), form.size_bytes)) {
    throw base::Error(base::StatusCode::kOutOfRange,
                      base::format("an array of {} and shape {} has more bytes than there can be addresses",
                                   dtype_name(dtype), readable(number_tuple(extents).get())));
  }
  form.dtype = std::move(dtype);
  form.extents = std::move(extents);
  return form;
}

std::int64_t num_elements(const ArrayForm& form) {
  std::int64_t count = 1;
  for (std::int64_t extent : form.extents) count = extent == 0 ? 0 : count * extent;
  return count;
}

std::vector<std::int64_t> strides_in(std::int64_t item, const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides(extents.size());
  std::int64_t stride = item;
  for (std::size_t d = extents.size(); d-- > 0;) {
    strides[d] = stride;
    if (extents[d] > 1) stride *= extents[d];
  }
  return strides;
}

bool is_c_order(const std::vector<std::int64_t>& strides, std::int64_t item,
                const std::vector<std::int64_t>& extents) {
  if (strides.size() != extents.size()) return false;
  for (std::int64_t extent : extents) {
    if (extent == 0) return true;
  }
  std::vector<std::int64_t> wanted = strides_in(item, extents);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] > 1 && strides[d] != wanted[d]) return false;
  }
  return true;
}

bool is_fortran_order(std::vector<std::int64_t> strides, std::int64_t item,
                      std::vector<std::int64_t> extents) {
  std::ranges::reverse(strides);
  std::ranges::reverse(extents);
  return is_c_order(strides, item, extents);
}

Ref number_tuple(const std::vector<std::int64_t>& numbers) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i),
                     checked(PyLong_FromLongLong(numbers[i])).release());
  }
  return tuple;
}

std::string form_text(const ArrayForm& form) {
  if (!form.dtype) return base::format("{} bytes", form.size_bytes);
  return base::format("{} of shape {}", dtype_name(form.dtype), readable(number_tuple(form.extents).get()));
}

}  // namespace weft::python
