// Arithmetic on counts and displacements: computed in 128 bits, and then checked to fit the 64 bits of an MPI_Count.
#pragma once

#include <limits>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

__extension__ using Wide = __int128;

constexpr bool fits_count(Wide value) {
  return value >= std::numeric_limits<MPI_Count>::min() && value <= std::numeric_limits<MPI_Count>::max();
}

}  // namespace weft::mpi
