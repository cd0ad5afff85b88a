// The objects of MPI of a rank that moves. They are packed and ended, and made again at the same addresses, maybe in another process:
// the rank's memory keeps their places, so the handles of the program stay valid. All else of them lies in memory of the process.
//
// Threads: the PE's, on the stack of the rank.
#pragma once

#include <cstddef>
#include <string>

#include "models/mpi/rank.h"
#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

// Lies in memory of the rank.
struct PackedObjects {
  void* bytes = nullptr;
  std::size_t size_bytes = 0;
};

// Fails with the reason if the objects of the rank cannot move.
base::Status obstacle_of_objects(const VirtualRank& rank);

// Packs what the rank has of MPI, and ends all objects but MPI_COMM_WORLD and MPI_COMM_SELF, which lose what refers to others.
// No handle is used until unpack_objects(). REQUIRES: the rank has a process and no obstacle. Throws std::bad_alloc, before anything
// has changed.
PackedObjects pack_objects(const VirtualRank& rank);

// REQUIRES: the rank has a new process, which has new predefined communicators.
void unpack_objects(const VirtualRank& rank, const PackedObjects& packed);

}  // namespace weft::mpi
