// A grid of processes: MPI_Cart_create and the functions on such a communicator. Ranks are in row-major order.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/base/pup.h"

#include "models/mpi/objects/error.h"

namespace weft::mpi {

class Cartesian {
 public:
  // A grid without dimensions has one process.
  Cartesian() = default;
  // Errors: MPI_ERR_ARG for negative numbers, MPI_ERR_DIMS for an extent below 1, MPI_ERR_TOPOLOGY if the grid has more nodes than
  // `processes`.
  static Error make(std::span<const int> extents, std::span<const int> periodic, int processes,
                    Cartesian* made);

  int size() const { return size_; }
  const std::vector<int>& extents() const { return extents_; }
  // 1 or 0 for each dimension.
  const std::vector<int>& periodic() const { return periodic_; }

  // REQUIRES: 0 <= rank < size().
  std::vector<int> coordinates(int rank) const;
  // Coordinates beyond a periodic dimension wrap around. Errors: MPI_ERR_ARG beyond another dimension.
  Error rank(std::span<const int> coordinates, int* rank) const;

  struct Neighbours {
    int source;
    int destination;  // both can be MPI_PROC_NULL
  };
  // Errors: MPI_ERR_DIMS if there is no such dimension.
  Error shift(int rank, int direction, int displacement, Neighbours* found) const;

  // The neighbours of a process for the neighbourhood collectives: for each dimension the one before and the one behind.
  std::vector<int> neighbours(int rank) const;

  // MPI_Cart_sub: the grid of the dimensions that remain; which subgrid a process is in, and its rank there.
  struct Part {
    int colour;
    int key;
  };
  Cartesian subgrid(std::span<const int> remain) const;
  Part part_of(int rank, std::span<const int> remain) const;

  void pup(base::Pup& p) { p | extents_ | periodic_ | size_; }

 private:
  std::vector<int> extents_;
  std::vector<int> periodic_;
  int size_ = 1;
};

}  // namespace weft::mpi
