#include "models/mpi/virtual_ranks/rank_memory.h"

#include <cstdlib>

#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

// weft-mpi-host answers with memory of the rank whose program runs (mpi/host/libc/memory.cpp).
void* allocate_in_rank(std::size_t size_bytes) {
  const ProgramRuns program;
  void* place = nullptr;
  return posix_memalign(&place, alignof(std::max_align_t), size_bytes) == 0 ? place : nullptr;
}

}  // namespace weft::mpi
