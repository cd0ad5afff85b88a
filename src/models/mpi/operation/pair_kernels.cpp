// MPI_MINLOC and MPI_MAXLOC: of two pairs the one with the smaller, or larger, value; of equal values the smaller index.
#include "models/mpi/operation/kernels.h"
#include "models/mpi/operation/numbers.h"

namespace weft::mpi {
namespace {

template <class Value, class Position>
struct ValueAndIndex {
  Value value;
  Position index;
};

template <bool kSmaller, class Pair>
void combine_pairs(const void* in, void* inout, MPI_Count count) {
  const Pair* __restrict__ from = static_cast<const Pair*>(in);
  Pair* __restrict__ to = static_cast<Pair*>(inout);
  for (MPI_Count i = 0; i < count; ++i) {
    const bool better = kSmaller ? from[i].value < to[i].value : to[i].value < from[i].value;
    if (better) {
      to[i].value = from[i].value;  // by member: the padding is not the program's
      to[i].index = from[i].index;
    } else if (from[i].value == to[i].value && from[i].index < to[i].index) {
      to[i].index = from[i].index;
    }
  }
}

// The pairs that MPI names: an index of type int, or one of the value's type (MPI_2REAL, MPI_2DOUBLE_PRECISION).
template <bool kSmaller>
Kernel pair_kernel(Number value, Number index) {
  return with_number<Kernel>(value, [index, value](auto tag) -> Kernel {
    using Value = typename decltype(tag)::Type;
    if (index == Number::kInt32) return &combine_pairs<kSmaller, ValueAndIndex<Value, std::int32_t>>;
    if (index == value) return &combine_pairs<kSmaller, ValueAndIndex<Value, Value>>;
    return nullptr;
  });
}

}  // namespace

Kernel find_pair_kernel(MPI_Op operation, const BasicType& value, const BasicType& index) {
  if (operation == MPI_MINLOC) return pair_kernel<true>(value.number, index.number);
  if (operation == MPI_MAXLOC) return pair_kernel<false>(value.number, index.number);
  return nullptr;
}

}  // namespace weft::mpi
