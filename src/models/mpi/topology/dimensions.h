// MPI_Dims_create: the extents of a balanced grid.
#pragma once

#include <span>

#include "models/mpi/objects/error.h"

namespace weft::mpi {

// Replaces the zeros in `dimensions`, so that the product of all is `nodes`. The new extents do not increase, and are as close to one
// another as possible: the difference of the largest and the smallest one is as small as it can be. Of several solutions the one with the
// largest smallest extent is taken, then the one with the largest second smallest extent, and so on. Errors: MPI_ERR_DIMS for a negative
// extent, or if the extents that are given do not divide `nodes`; MPI_ERR_ARG for `nodes` below 1.
Error balance_dimensions(int nodes, std::span<int> dimensions);

}  // namespace weft::mpi
