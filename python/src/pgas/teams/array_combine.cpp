#include "pgas/teams/array_combine.h"

#include <cstdint>

#include "weft/base/error.h"

#include "base/format.h"
#include "buffers/arrays/dtype.h"

namespace weft::python {

namespace {

template <class OneByte, class TwoBytes, class FourBytes, class EightBytes>
pgas::ElementCombine integer_combine(std::size_t size_bytes) {
  switch (size_bytes) {
    case 1:
      return pgas::number_combine<OneByte>();
    case 2:
      return pgas::number_combine<TwoBytes>();
    case 4:
      return pgas::number_combine<FourBytes>();
    case 8:
      return pgas::number_combine<EightBytes>();
    default:
      return {};
  }
}

pgas::ElementCombine combine_of(const Ref& dtype) {
  if (!dtype || !is_native_byte_order(dtype)) return {};
  const std::size_t size_bytes = item_size_bytes(dtype);
  switch (dtype_letter(dtype)) {
    case 'b':
      return pgas::number_combine<bool>();
    case 'i':
      return integer_combine<std::int8_t, std::int16_t, std::int32_t, std::int64_t>(size_bytes);
    case 'u':
      return integer_combine<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>(size_bytes);
    case 'f':
      if (size_bytes == sizeof(float)) return pgas::number_combine<float>();
      if (size_bytes == sizeof(double)) return pgas::number_combine<double>();
      return {};
    default:
      return {};
  }
}

}  // namespace

pgas::ElementCombine array_combine(const ArrayForm& form, runtime::Reducer reducer, const char* use) {
  const pgas::ElementCombine combine = combine_of(form.dtype);
  const bool counts = reducer == runtime::Reducer::kSum || reducer == runtime::Reducer::kProduct;
  if (combine.function != nullptr && counts && dtype_letter(form.dtype) == 'b') {
    throw base::Error(base::StatusCode::kInvalidArgument,
                      base::format("{} got an array of bools to add or to multiply in place, and an array of "
                                   "bools cannot hold the result; pass "
                                   "array.astype(int), or use weft.Reducer.logical_or or logical_and",
                                   use));
  }
  if (combine.function != nullptr) return combine;
  throw base::Error(
      base::StatusCode::kUnsupported,
      base::format(
          "{} got an array of {}; it takes bools, integers, float32 and float64 in native byte order. Pass "
          "other arrays to allreduce() or reduce(), which take values",
          use, form.dtype ? dtype_name(form.dtype) : "plain bytes"));
}

runtime::Reducer in_place_reducer(PyObject* reducer, const char* use) {
  const Ref kind = Ref::steal(PyObject_GetAttrString(reducer, "_kind"));
  if (!kind) PyErr_Clear();
  if (kind && PyLong_Check(kind.get()) != 0) {
    const auto found = static_cast<runtime::Reducer>(PyLong_AsLong(kind.get()));
    if (found < runtime::Reducer::kGather) return found;
  }
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format(
          "{} takes weft.Reducer.sum, product, min, max, logical_and, logical_or or logical_xor, not {}; "
          "allreduce() and reduce() take values and any reducer",
          use, readable(reducer)));
}

}  // namespace weft::python
