#include "models/mpi/topology/cartesian.h"

#include <cstddef>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {
namespace {

// The position in a dimension, wrapped around if it is periodic; nothing if it is outside.
std::optional<int> position_in(long long position, int extent, bool periodic) {
  if (position >= 0 && position < extent) return static_cast<int>(position);
  if (!periodic) return std::nullopt;
  const long long rest = position % extent;
  return static_cast<int>(rest < 0 ? rest + extent : rest);
}

}  // namespace

Error Cartesian::make(std::span<const int> extents, std::span<const int> periodic, int processes,
                      Cartesian* made) {
  Cartesian grid;
  long long size = 1;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 1)
      return {MPI_ERR_DIMS, base::format("dimension {} has {} nodes; give 1 or more", i, extents[i])};
    size *= extents[i];
    if (size > processes)
      return {MPI_ERR_TOPOLOGY,
              base::format("the grid has more nodes than the communicator has processes ({})", processes)};
    grid.extents_.push_back(extents[i]);
    grid.periodic_.push_back(periodic[i] != 0 ? 1 : 0);
  }
  grid.size_ = static_cast<int>(size);
  *made = std::move(grid);
  return {};
}

std::vector<int> Cartesian::coordinates(int rank) const {
  std::vector<int> found(extents_.size());
  for (std::size_t i = extents_.size(); i-- > 0;) {
    found[i] = rank % extents_[i];
    rank /= extents_[i];
  }
  return found;
}

Error Cartesian::rank(std::span<const int> coordinates, int* rank) const {
  int found = 0;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    const std::optional<int> position = position_in(coordinates[i], extents_[i], periodic_[i] != 0);
    if (!position)
      return {MPI_ERR_ARG,
              base::format("coordinate {} is outside of dimension {}, which has {} nodes and is not periodic",
                           coordinates[i], i, extents_[i])};
    found = found * extents_[i] + *position;
  }
  *rank = found;
  return {};
}

Error Cartesian::shift(int rank, int direction, int displacement, Neighbours* found) const {
  if (direction < 0 || static_cast<std::size_t>(direction) >= extents_.size())
    return {MPI_ERR_DIMS,
            base::format("there is no dimension {} in a grid of {} dimensions", direction, extents_.size())};
  const auto i = static_cast<std::size_t>(direction);
  int unit = 1;  // between the ranks of neighbours in this dimension
  for (std::size_t inner = i + 1; inner < extents_.size(); ++inner) unit *= extents_[inner];
  const int here = rank / unit % extents_[i];
  const auto at = [&](long long position) {
    const std::optional<int> there = position_in(position, extents_[i], periodic_[i] != 0);
    return there ? rank + (*there - here) * unit : MPI_PROC_NULL;
  };
  *found = {at(static_cast<long long>(here) - displacement), at(static_cast<long long>(here) + displacement)};
  return {};
}

std::vector<int> Cartesian::neighbours(int rank) const {
  std::vector<int> found;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    Neighbours both{MPI_PROC_NULL, MPI_PROC_NULL};
    (void)shift(rank, static_cast<int>(i), 1, &both);  // the dimension exists
    found.push_back(both.source);
    found.push_back(both.destination);
  }
  return found;
}

Cartesian Cartesian::subgrid(std::span<const int> remain) const {
  Cartesian part;
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    if (remain[i] == 0) continue;
    part.extents_.push_back(extents_[i]);
    part.periodic_.push_back(periodic_[i]);
    part.size_ *= extents_[i];
  }
  return part;
}

Cartesian::Part Cartesian::part_of(int rank, std::span<const int> remain) const {
  const std::vector<int> position = coordinates(rank);
  Part part{0, 0};
  for (std::size_t i = 0; i < extents_.size(); ++i) {
    int& number = remain[i] != 0 ? part.key : part.colour;
    number = number * extents_[i] + position[i];
  }
  return part;
}

}  // namespace weft::mpi
