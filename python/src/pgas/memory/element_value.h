// One element in memory and the Python number that it stands for.
//
// Threads: the PE's thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "support/support.h"

namespace weft::python {

// The element types that Python's own numbers stand for, in native byte order. Elements of other types are NumPy's scalars.
enum class ElementCode : std::uint8_t {
  kOther,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
};

// REQUIRES: a numpy.dtype.
ElementCode element_code(const Ref& dtype);

// Writes the element. Throws PythonError or base::Error for a value that the type cannot hold: an integer outside of its range, or
// a float for an integer type.
void store_element(PyObject* value, ElementCode code, const Ref& dtype, std::byte* to);
// bool, int or float; a NumPy scalar for kOther.
Ref load_element(const std::byte* from, ElementCode code, const Ref& dtype);

// Whether put() takes the object as one element: it is no array and has no elements of its own.
bool is_one_element(PyObject* value);

}  // namespace weft::python
