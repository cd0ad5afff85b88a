// Indices and shapes of collections as Python values: ints, and tuples for several dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "weft/chare/index.h"

#include "support/support.h"

namespace weft::python {

// All throw base::Error for what is none, and what an __index__ method raises.
int coordinate(PyObject* object);
struct Coordinates {
  explicit Coordinates(PyObject* object);
  std::array<int, chare::kMaxDimensions> values{};
  int count = 1;
};
// Row-major; `name` is the collection's, for the message.
std::uint64_t linear_index(const chare::Shape& shape, PyObject* index, const std::string& name);
// Nothing for what is no index of that shape.
std::optional<std::uint64_t> linear_index_if_any(const chare::Shape& shape, PyObject* index);

Ref index_object(const chare::Index& index);
Ref shape_object(const chare::Shape& shape);

}  // namespace weft::python
