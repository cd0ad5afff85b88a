#include "models/mpi/operation/kernels.h"

namespace weft::mpi {

// MPI 5.0, section 6.9.2, says which operators there are for which types. Two more are allowed, as in other libraries: the
// operators of integers on MPI_CHAR, and the logical ones on the integers of Fortran.
Kernel find_kernel(MPI_Op operation, const BasicType& type) {
  switch (type.kind) {
    case BasicKind::kByte:
      return bitwise_kernel(operation, type.number);
    case BasicKind::kCharacter:
      if (type.handle != MPI_CHAR) return nullptr;
      [[fallthrough]];
    case BasicKind::kInteger:
      if (const Kernel kernel = arithmetic_kernel(operation, type.number)) return kernel;
      if (const Kernel kernel = bitwise_kernel(operation, type.number)) return kernel;
      return logical_kernel(operation, type.number);
    case BasicKind::kReal:
      return arithmetic_kernel(operation, type.number);
    case BasicKind::kComplex:
      return complex_kernel(operation, type.number);
    case BasicKind::kLogical:
      return logical_kernel(operation, type.number);
  }
  return nullptr;
}

}  // namespace weft::mpi
