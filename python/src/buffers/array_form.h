// The element type and the extents of an array in C order, for memory of any kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/support.h"

namespace weft::python {

struct ArrayForm {
  Ref dtype;  // a numpy.dtype without Python objects; null where only the bytes are known
  std::vector<std::int64_t> extents;
  std::size_t size_bytes = 0;
};

// An int or a sequence of ints, none negative; throws base::Error, which begins with `use`.
std::vector<std::int64_t> extents_from(PyObject* shape, const char* use);
// Throws base::Error when the size cannot be expressed.
ArrayForm make_form(Ref dtype, std::vector<std::int64_t> extents);
// extents x item_size_bytes in `size_bytes`; false when it cannot be expressed.
bool total_bytes(const std::vector<std::int64_t>& extents, std::size_t item_size_bytes,
                 std::size_t& size_bytes);
std::int64_t num_elements(const ArrayForm& form);
// Between neighbours in each dimension, in units of `item`.
std::vector<std::int64_t> strides_in(std::int64_t item, const std::vector<std::int64_t>& extents);
// Whether `strides` are those of C order; extents of 1 may have any.
bool is_c_order(const std::vector<std::int64_t>& strides, std::int64_t item,
                const std::vector<std::int64_t>& extents);

Ref number_tuple(const std::vector<std::int64_t>& numbers);
// "float64 of shape (3, 4)"
std::string form_text(const ArrayForm& form);

}  // namespace weft::python
