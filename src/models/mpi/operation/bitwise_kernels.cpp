// The bitwise and the logical operators.
#include "models/mpi/operation/kernels.h"
#include "models/mpi/operation/numbers.h"

namespace weft::mpi {
namespace {

struct BitsAnd {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>(left & right);
  }
};
struct BitsOr {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>(left | right);
  }
};
struct BitsXor {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>(left ^ right);
  }
};
struct BothTrue {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>((left != 0) & (right != 0));
  }
};
struct EitherTrue {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>((left != 0) | (right != 0));
  }
};
struct OneTrue {
  template <class T>
  T operator()(T left, T right) const {
    return static_cast<T>((left != 0) != (right != 0));
  }
};

template <class Function>
Kernel integer_kernel(Number number) {
  return with_integer<Kernel>(
      number, [](auto tag) -> Kernel { return &combine<typename decltype(tag)::Type, Function>; });
}

}  // namespace

Kernel bitwise_kernel(MPI_Op operation, Number number) {
  if (operation == MPI_BAND) return integer_kernel<BitsAnd>(number);
  if (operation == MPI_BOR) return integer_kernel<BitsOr>(number);
  if (operation == MPI_BXOR) return integer_kernel<BitsXor>(number);
  return nullptr;
}

Kernel logical_kernel(MPI_Op operation, Number number) {
  if (operation == MPI_LAND) return integer_kernel<BothTrue>(number);
  if (operation == MPI_LOR) return integer_kernel<EitherTrue>(number);
  if (operation == MPI_LXOR) return integer_kernel<OneTrue>(number);
  return nullptr;
}

}  // namespace weft::mpi
