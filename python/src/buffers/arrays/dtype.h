// Element types: numpy.dtype, for memory of any kind.
//
// Functions with a parameter `dtype` REQUIRE a numpy.dtype.
#pragma once

#include <cstddef>
#include <string>

#include "support/support.h"

namespace weft::python {

// numpy.dtype(description); also takes the names of element_types.h. Throws PythonError if NumPy refuses it,
// base::Error if its elements are Python objects.
Ref make_dtype(PyObject* description);
std::size_t item_size_bytes(const Ref& dtype);
// The name for messages: "float64", or the fields of a record.
std::string dtype_name(const Ref& dtype);
// The letter of NumPy's array interface: 'b', 'i', 'u', 'f', 'c', 'V', ...
char dtype_letter(const Ref& dtype);
bool is_native_byte_order(const Ref& dtype);
// Whether two element types have the same bytes with the same meaning.
bool is_same_type(const Ref& dtype, const Ref& other);
// Whether the elements are plain bytes: uint8.
bool is_byte_type(const Ref& dtype);

// Whether NumPy's type number is that of a bool, integer, float or complex type.
bool is_number_type(int type_number);
// The number that encodes such a type in native byte order, or a type of element_types.h; -1 for other types.
int encoded_type_number(const Ref& dtype);
// The type with this number; null if there is none.
Ref dtype_of_number(int number);
// Returns the object if it is a numpy.dtype without Python objects; else null.
Ref dtype_or_nothing(Ref object);

}  // namespace weft::python
