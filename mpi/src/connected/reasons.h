// Why processes cannot be connected or spawned: the code alone tells a program with MPI_ERRORS_RETURN, such as one of mpi4py, too little.
#pragma once

#include "models/mpi/connected/connecting.h"
#include "models/mpi/objects/error.h"

namespace weft::mpi {

// Returns the error. The root says each reason once on stderr if the error handler returns.
Error with_reason(const char* function, const Meeting& meeting, Error error);

}  // namespace weft::mpi
