// Describes the MPI state of a rank for a move.
//
// Threads: the PE's.
#pragma once

#include <span>

#include "models/mpi/moving/descriptions.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

// `objects`: those of the rank that move, in the order in which they were made. REQUIRES: the rank has a process.
RankDescription describe(Rank& rank, std::span<Object* const> objects);

}  // namespace weft::mpi
