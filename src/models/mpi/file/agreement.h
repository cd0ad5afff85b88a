// What the processes of a file agree on in a collective call. Threads: the PE's.
#pragma once

#include <cstdint>
#include <string>

#include "weft/runtime/task.h"

#include "models/mpi/communicators/collective_context.h"
#include "models/mpi/objects/error.h"

namespace weft::mpi {

// An argument that is the same on all processes.
struct SameArgument {
  std::string name;  // for the sentence of the error
  std::int64_t value = 0;
};

// Returns when all processes have called it: the error of this process; else the first one of the others; else MPI_ERR_NOT_SAME if
// another process has another value.
runtime::Task<Error> agree(CollectiveContext context, Error mine, SameArgument argument);

}  // namespace weft::mpi
