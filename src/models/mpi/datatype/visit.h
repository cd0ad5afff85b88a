// Where the bytes of elements are, for memory that the CPU cannot copy.
#pragma once

#include "models/mpi/datatype/copy.h"
#include "models/mpi/datatype/even_runs.h"

namespace weft::mpi {

// Calls `visit` with the runs that have the leading `size_bytes` of the packed elements, in the order of the packed bytes.
// REQUIRES: 0 <= size_bytes <= count * layout size.
void visit_elements(const Elements& elements, MPI_Count size_bytes, const RunVisitor& visit);

}  // namespace weft::mpi
