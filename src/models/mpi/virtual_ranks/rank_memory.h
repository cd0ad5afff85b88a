// Memory of one of several ranks of a process. It has the same address in every process, and moves with the rank.
//
// Threads: the PE's.
#pragma once

#include <cstddef>

namespace weft::mpi {

// Memory of the rank that runs, aligned for any type. std::free() frees it. Null if there is none.
// REQUIRES: VirtualRank::current() is not null.
void* allocate_in_rank(std::size_t size_bytes);

}  // namespace weft::mpi
