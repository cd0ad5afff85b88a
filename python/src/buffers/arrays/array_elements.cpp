#include "buffers/arrays/array_elements.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "buffers/arrays/numpy_api.h"
#include "codec/encoding.h"

namespace weft::python {

namespace {

using runtime::ElementLayout;
using runtime::Reducer;

// Unsigned and at least as wide as int, so that nothing overflows.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) <= sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;

template <class T>
void merge_integers(Reducer reducer, std::byte* into, const std::byte* first, const std::byte* second,
                    std::size_t count) {
  using Wide = Wrapping<T>;
  switch (reducer) {
    case Reducer::kSum:
      return runtime::reduction_detail::merge_each<T>(into, first, second, count, [](T a, T b) {
        const Wide merged = static_cast<Wide>(a) + static_cast<Wide>(b);
        return static_cast<T>(merged);
      });
    case Reducer::kProduct:
      return runtime::reduction_detail::merge_each<T>(into, first, second, count, [](T a, T b) {
        const Wide merged = static_cast<Wide>(a) * static_cast<Wide>(b);
        return static_cast<T>(merged);
      });
    default:
      return runtime::reduction_detail::merge_elements<T>(reducer, into, first, second, count);
  }
}

template <class T>
ElementLayout layout_of() {
  if constexpr (std::is_integral_v<T>) {
    return {&merge_integers<T>, sizeof(T), 0};
  } else {
    return {&runtime::reduction_detail::merge_elements<T>, sizeof(T), 0};
  }
}

ElementLayout layout_of_type(int type_number) {
  switch (type_number) {
    case NPY_BYTE:
      return layout_of<npy_byte>();
    case NPY_UBYTE:
      return layout_of<npy_ubyte>();
    case NPY_SHORT:
      return layout_of<npy_short>();
    case NPY_USHORT:
      return layout_of<npy_ushort>();
    case NPY_INT:
      return layout_of<npy_int>();
    case NPY_UINT:
      return layout_of<npy_uint>();
    case NPY_LONG:
      return layout_of<npy_long>();
    case NPY_ULONG:
      return layout_of<npy_ulong>();
    case NPY_LONGLONG:
      return layout_of<npy_longlong>();
    case NPY_ULONGLONG:
      return layout_of<npy_ulonglong>();
    case NPY_FLOAT:
      return layout_of<npy_float>();
    case NPY_DOUBLE:
      return layout_of<npy_double>();
    default:
      return {};
  }
}

}  // namespace

ElementLayout array_layout(Reducer reducer, std::span<const std::byte> value) {
  ArrayHeader header;
  if (reducer > Reducer::kMax || value.size() < 1 + sizeof header ||
      static_cast<ValueTag>(value[0]) != ValueTag::kArray) {
    return {};
  }
  std::memcpy(&header, value.data() + 1, sizeof header);
  ElementLayout layout = layout_of_type(header.type_number);
  layout.first_element = 1 + sizeof header + header.num_dimensions * sizeof(std::int64_t);
  if (layout.merge == nullptr || value.size() < layout.first_element) return {};
  return layout;
}

}  // namespace weft::python
