// The memory that a process has attached to a dynamic window. Accesses name it by addresses.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>

#include "weft/memory/buffer.h"

#include "models/mpi/datatype/checked.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {

class AttachedMemory {
 public:
  // Whether a part of the range is attached.
  bool meets(std::uintptr_t first, std::uint64_t size_bytes) const;
  // Memory of no bytes is kept for detach() alone. REQUIRES: !meets(first, size_bytes).
  void attach(std::uintptr_t first, std::uint64_t size_bytes, memory::Place place);
  // False if no memory that begins there is attached.
  bool detach(std::uintptr_t first);

  std::uint64_t size_bytes() const { return size_bytes_; }
  // MPI_SUCCESS if all bytes of the runs are attached and in one place. Each piece may go on in a region that adjoins.
  // Errors: MPI_ERR_RMA_RANGE; MPI_ERR_UNSUPPORTED_OPERATION for several places.
  int check(std::span<const WindowRun> runs) const;
  // REQUIRES: check() has accepted the runs.
  memory::Place place_of(std::span<const WindowRun> runs) const {
    return find(runs.front().offset)->second.place;
  }

 private:
  struct Region {
    std::uint64_t size_bytes = 0;
    memory::Place place;
  };
  using Regions = std::map<std::uintptr_t, Region>;
  // The region that has the byte; end() without one.
  Regions::const_iterator find(Wide address) const;
  int check_run(const WindowRun& run, memory::Place place) const;
  int check_piece(Wide address, std::uint64_t size_bytes, memory::Place place) const;

  Regions regions_;
  std::multiset<std::uintptr_t> empty_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace weft::mpi
