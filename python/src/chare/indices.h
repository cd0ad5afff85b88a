// Indices and shapes of collections as Python values: ints, and tuples for several dimensions.
#pragma once

#include <array>
#include <cstdint>

#include "weft/chare/index.h"

#include "support/support.h"

namespace weft::python {

// All throw base::Error for what is none.
int coordinate(PyObject* object);
struct Coordinates {
  explicit Coordinates(PyObject* object);
  std::array<int, chare::kMaxDimensions> values{};
  int count = 1;
};
// Row-major; `name` is the collection's, for the message.
std::uint64_t linear_index(const chare::Shape& shape, PyObject* index, const std::string& name);

Ref index_object(const chare::Index& index);
Ref shape_object(const chare::Shape& shape);

}  // namespace weft::python
