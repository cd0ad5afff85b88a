// Makes the MPI state of a rank again from its description, after a move.
//
// Threads: the PE's.
#pragma once

#include "models/mpi/moving/descriptions.h"
#include "models/mpi/rank.h"

namespace weft::mpi {

// REQUIRES: the rank has a process with new predefined communicators, and the places of all objects have their memory and no object.
// Throws Error for a description that cannot be right.
void restore(Rank& rank, const RankDescription& all);

}  // namespace weft::mpi
