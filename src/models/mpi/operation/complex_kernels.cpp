// MPI_SUM and MPI_PROD on complex numbers. The product is the textbook's: it does not repair products with infinite parts, as
// std::complex does, because that keeps the loop from being vectorised.
#include "models/mpi/operation/kernels.h"
#include "models/mpi/operation/numbers.h"

namespace weft::mpi {
namespace {

template <class T>
struct ComplexValue {
  T real;
  T imaginary;
};

struct AddComplex {
  template <class T>
  ComplexValue<T> operator()(ComplexValue<T> left, ComplexValue<T> right) const {
    using C = typename Computed<T>::Type;
    return {static_cast<T>(C(left.real) + C(right.real)),
            static_cast<T>(C(left.imaginary) + C(right.imaginary))};
  }
};

struct MultiplyComplex {
  template <class T>
  ComplexValue<T> operator()(ComplexValue<T> left, ComplexValue<T> right) const {
    using C = typename Computed<T>::Type;
    const C a = C(left.real);
    const C b = C(left.imaginary);
    const C c = C(right.real);
    const C d = C(right.imaginary);
    return {static_cast<T>(a * c - b * d), static_cast<T>(a * d + b * c)};
  }
};

template <class Function>
Kernel complex_number_kernel(Number part) {
  return with_real<Kernel>(part, [](auto tag) -> Kernel {
    return &combine<ComplexValue<typename decltype(tag)::Type>, Function>;
  });
}

}  // namespace

Kernel complex_kernel(MPI_Op operation, Number part) {
  if (operation == MPI_SUM) return complex_number_kernel<AddComplex>(part);
  if (operation == MPI_PROD) return complex_number_kernel<MultiplyComplex>(part);
  return nullptr;
}

}  // namespace weft::mpi
