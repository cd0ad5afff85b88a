// MPI_SUM, MPI_PROD, MPI_MIN and MPI_MAX on integers and real numbers.
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

template <class Function>
Kernel number_kernel(Number number) {
  return with_number<Kernel>(
      number, [](auto tag) -> Kernel { return &combine<typename decltype(tag)::Type, Function>; });
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
