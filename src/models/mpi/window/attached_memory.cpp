#include "models/mpi/window/attached_memory.h"

#include <algorithm>
#include <iterator>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

namespace {

// How many of the leading pieces of a run lie in [first, end), if the address of its first piece does.
Wide pieces_inside(const WindowRun& run, Wide address, Wide first, Wide end) {
  const Wide last = end - Wide{run.size_bytes};
  if (address > last) return 0;
  if (run.stride == 0) return Wide{run.count};
  return (run.stride > 0 ? (last - address) / run.stride : (address - first) / -Wide{run.stride}) + 1;
}

}  // namespace

bool AttachedMemory::meets(std::uintptr_t first, std::uint64_t size_bytes) const {
  if (size_bytes == 0) return false;
  const auto next = regions_.lower_bound(first);
  if (next != regions_.end() && next->first - first < size_bytes) return true;
  return next != regions_.begin() && first - std::prev(next)->first < std::prev(next)->second.size_bytes;
}

void AttachedMemory::attach(std::uintptr_t first, std::uint64_t size_bytes, memory::Place place) {
  if (size_bytes == 0) {
    empty_.insert(first);
    return;
  }
  regions_.emplace(first, Region{size_bytes, place});
  size_bytes_ += size_bytes;
}

bool AttachedMemory::detach(std::uintptr_t first) {
  if (const auto region = regions_.find(first); region != regions_.end()) {
    size_bytes_ -= region->second.size_bytes;
    regions_.erase(region);
    return true;
  }
  const auto empty = empty_.find(first);
  if (empty == empty_.end()) return false;
  empty_.erase(empty);
  return true;
}

AttachedMemory::Regions::const_iterator AttachedMemory::find(Wide address) const {
  if (address < 0 || address > Wide{UINTPTR_MAX}) return regions_.end();
  const auto next = regions_.upper_bound(static_cast<std::uintptr_t>(address));
  if (next == regions_.begin()) return regions_.end();
  const auto region = std::prev(next);
  return address - Wide{region->first} < Wide{region->second.size_bytes} ? region : regions_.end();
}

int AttachedMemory::check(std::span<const WindowRun> runs) const {
  const auto first = find(runs.front().offset);
  if (first == regions_.end()) return MPI_ERR_RMA_RANGE;
  for (const WindowRun& run : runs) {
    const int error = check_run(run, first->second.place);
    if (error != MPI_SUCCESS) return error;
  }
  return MPI_SUCCESS;
}

// Each step covers all pieces inside of a region, or one that goes beyond it.
int AttachedMemory::check_run(const WindowRun& run, memory::Place place) const {
  Wide address = run.offset;
  for (Wide left = Wide{run.count}; left > 0;) {
    const auto region = find(address);
    if (region == regions_.end()) return MPI_ERR_RMA_RANGE;
    const Wide first = Wide{region->first};
    Wide checked = pieces_inside(run, address, first, first + Wide{region->second.size_bytes});
    if (checked == 0 || region->second.place != place) {
      const int error = check_piece(address, run.size_bytes, place);
      if (error != MPI_SUCCESS) return error;
      checked = run.stride == 0 ? left : 1;
    }
    checked = std::min(checked, left);
    address += checked * run.stride;
    left -= checked;
  }
  return MPI_SUCCESS;
}

int AttachedMemory::check_piece(Wide address, std::uint64_t size_bytes, memory::Place place) const {
  const Wide end = address + Wide{size_bytes};
  while (address < end) {
    const auto region = find(address);
    if (region == regions_.end()) return MPI_ERR_RMA_RANGE;
    if (region->second.place != place) return MPI_ERR_UNSUPPORTED_OPERATION;
    address = Wide{region->first} + Wide{region->second.size_bytes};
  }
  return MPI_SUCCESS;
}

}  // namespace weft::mpi
