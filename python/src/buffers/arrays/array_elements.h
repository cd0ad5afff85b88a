// How encoded arrays are merged element by element, without NumPy: for large contributions to reductions.
#pragma once

#include <cstddef>
#include <span>

#include "weft/runtime/reduction.h"

namespace weft::python {

// The layout of the elements of an encoded value, whose first byte is its tag. Only arrays of integers, float32 and float64 have a layout, and only for sum,
// product, min and max. The elements come out as NumPy's functions make them; integers wrap.
runtime::ElementLayout array_layout(runtime::Reducer reducer, std::span<const std::byte> value);

}  // namespace weft::python
