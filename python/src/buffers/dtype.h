// Element types, numpy.dtype, for memory of any kind.
//
// The functions that take a `dtype` REQUIRE a numpy.dtype.
#pragma once

#include <cstddef>
#include <string>

#include "support/support.h"

namespace weft::python {

// numpy.dtype(description). Throws PythonError if NumPy refuses it, base::Error if its elements are Python
// objects.
Ref make_dtype(PyObject* description);
std::size_t item_size_bytes(const Ref& dtype);
// "float64", or a record's fields.
std::string dtype_name(const Ref& dtype);
// The letter of NumPy's array interface: 'b', 'i', 'u', 'f', 'c', 'V', ...
char dtype_letter(const Ref& dtype);
bool is_native_byte_order(const Ref& dtype);

// NumPy's number of a bool, integer, float or complex type: these travel as their number.
bool is_number_type(int type_number);
// That number, or -1 if the type is another one or not in native byte order.
int plain_type_number(const Ref& dtype);
// The type with that number; null for no such type.
Ref plain_dtype(int type_number);
// The object, if it is a numpy.dtype without Python objects; else null.
Ref dtype_or_nothing(Ref object);

}  // namespace weft::python
