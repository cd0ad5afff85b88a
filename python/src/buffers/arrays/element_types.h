// Element types that NumPy lacks: bfloat16, the 8-bit floats and a few others, by name.
//
// Their numpy.dtype is that of the package ml_dtypes if it can be imported. Else it is a record of one field, whose
// name is that of the type and whose value is the bits, an unsigned integer. Both have the same bytes, and count as
// the same type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "buffers/arrays/dlpack_abi.h"
#include "support/support.h"

namespace weft::python {

struct ElementType {
  const char* name;  // as in ml_dtypes and JAX; PyTorch has most of them by the same name
  dlpack::DataType dlpack;

  std::size_t size_bytes() const { return std::size_t{dlpack.bits} * dlpack.lanes / 8; }
};

// The type of the dtype; null if it is not one of these. REQUIRES: a numpy.dtype.
const ElementType* element_type_of(PyObject* dtype);
const ElementType* element_type_from_name(std::string_view name);
const ElementType* element_type_from_dlpack(const dlpack::DataType& type);
// The type that this number encodes; null if there is none.
const ElementType* element_type_from_number(std::size_t number);
std::size_t number_of(const ElementType& type);

// The numpy.dtype of the type.
Ref dtype_of(const ElementType& type);

}  // namespace weft::python
