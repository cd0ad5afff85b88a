// The form of an array in C order: its element type and its extents. The memory may be of any kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/support.h"

namespace weft::python {

struct ArrayForm {
  Ref dtype;  // a numpy.dtype without Python objects; null if only the size in bytes is known
  std::vector<std::int64_t> extents;
  std::size_t size_bytes = 0;
};

// The extents from a `shape` argument: an int or a sequence of ints, none negative. Throws base::Error, whose
// message begins with `use`.
std::vector<std::int64_t> extents_from(PyObject* shape, const char* use);
// Throws base::Error if the size in bytes overflows.
ArrayForm make_form(Ref dtype, std::vector<std::int64_t> extents);
// Sets `size_bytes` to the product of the extents and item_size_bytes. Returns false if it overflows.
bool total_bytes(const std::vector<std::int64_t>& extents, std::size_t item_size_bytes,
                 std::size_t& size_bytes);
std::int64_t num_elements(const ArrayForm& form);
// The strides of C order. `item` is the stride between neighbours of the last dimension.
std::vector<std::int64_t> strides_in(std::int64_t item, const std::vector<std::int64_t>& extents);
// Whether `strides` are those of C order. An extent of 1 may have any stride.
bool is_c_order(const std::vector<std::int64_t>& strides, std::int64_t item,
                const std::vector<std::int64_t>& extents);
// Whether elements with these strides and extents are in Fortran order without gaps.
bool is_fortran_order(std::vector<std::int64_t> strides, std::int64_t item,
                      std::vector<std::int64_t> extents);

Ref number_tuple(const std::vector<std::int64_t>& numbers);
// The form for messages, such as "float64 of shape (3, 4)".
std::string form_text(const ArrayForm& form);

}  // namespace weft::python
