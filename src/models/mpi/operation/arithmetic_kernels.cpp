// MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX on integers and real numbers.
#include <type_traits>

#include "models/mpi/operation/kernels.h"
#include "models/mpi/operation/numbers.h"

namespace weft::mpi {
namespace {

struct AddValues {
  template <class T>
  T operator()(T left, T right) const {
    using C = typename Computed<T>::Type;
    return static_cast<T>(static_cast<C>(left) + static_cast<C>(right));
  }
};

struct MultiplyValues {
  template <class T>
  T operator()(T left, T right) const {
    using C = typename Computed<T>::Type;
    return static_cast<T>(static_cast<C>(left) * static_cast<C>(right));
  }
};

struct SmallerValue {
  template <class T>
  T operator()(T left, T right) const {
    return left < right ? left : right;
  }
};

struct LargerValue {
  template <class T>
  T operator()(T left, T right) const {
    return right < left ? left : right;
  }
};

#if defined(__x86_64__)
// combine() with vectors of 32 bytes, for processors that have them; the results are the same. The library is compiled for all processors, whose
// vectors have 16 bytes.
template <class T, class Function>
__attribute__((target("avx2"))) void combine_wide(const void* in, void* inout, MPI_Count count) {
  const T* __restrict__ from = static_cast<const T*>(in);
  T* __restrict__ to = static_cast<T*>(inout);
  for (MPI_Count i = 0; i < count; ++i) to[i] = Function()(from[i], to[i]);
}
bool has_wide_vectors() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
#endif

template <class Function, class T>
Kernel kernel_of() {
#if defined(__x86_64__)
  if constexpr (std::is_arithmetic_v<T> && sizeof(T) <= sizeof(double))
    if (has_wide_vectors()) return &combine_wide<T, Function>;
#endif
  return &combine<T, Function>;
}

template <class Function>
Kernel number_kernel(Number number) {
  return with_number<Kernel>(
      number, [](auto tag) -> Kernel { return kernel_of<Function, typename decltype(tag)::Type>(); });
}

}  // namespace

Kernel arithmetic_kernel(MPI_Op operation, Number number) {
  if (operation == MPI_SUM) return number_kernel<AddValues>(number);
  if (operation == MPI_PROD) return number_kernel<MultiplyValues>(number);
  if (operation == MPI_MIN) return number_kernel<SmallerValue>(number);
  if (operation == MPI_MAX) return number_kernel<LargerValue>(number);
  return nullptr;
}

}  // namespace weft::mpi
