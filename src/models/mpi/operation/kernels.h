// The loops of the predefined operators: inout[i] = in[i] op inout[i], for one basic type or one type of pairs.
#pragma once

#include "weft/mpi/mpi.h"

#include "models/mpi/datatype/basic_type.h"

namespace weft::mpi {

// The buffers do not overlap.
using Kernel = void (*)(const void* in, void* inout, MPI_Count count);

// The loop of an operator on a basic type; null if MPI does not define the operator for it.
Kernel find_kernel(MPI_Op operation, const BasicType& type);

// The loop of MPI_MINLOC or MPI_MAXLOC on C structs of a value and an index; null if there is none.
Kernel find_pair_kernel(MPI_Op operation, const BasicType& value, const BasicType& index);

// The loops by topic; find_kernel() chooses. Null if there is none for the representation.
Kernel arithmetic_kernel(MPI_Op operation, Number number);  // MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX
Kernel complex_kernel(MPI_Op operation, Number part);       // MPI_SUM, MPI_PROD
Kernel bitwise_kernel(MPI_Op operation, Number number);     // MPI_BAND, MPI_BOR, MPI_BXOR
Kernel logical_kernel(MPI_Op operation, Number number);     // MPI_LAND, MPI_LOR, MPI_LXOR

}  // namespace weft::mpi
