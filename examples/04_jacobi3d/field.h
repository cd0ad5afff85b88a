// A block's points in host memory, with one layer of ghost points around them. This is all that knows where
// the values are and how they are computed: a variant for another kind of memory has the same methods.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decomposition.h"

namespace jacobi3d {

// What every point holds at the start and every boundary point for ever; coordinates run from -1 (boundary)
// to the number of points (boundary). Differs between neighbours, so that a halo in a wrong place shows;
// exact in binary.
constexpr double initial_value(std::int64_t x, std::int64_t y, std::int64_t z) {
  return static_cast<double>(((x + 1) * 73 + (y + 1) * 179 + (z + 1) * 283) % 1009) / 1024.0;
}

// The mean of the six neighbours. Adding in this order is what makes results equal to the last bit
// everywhere.
constexpr double mean_of_neighbours(double x_lower, double x_upper, double y_lower, double y_upper,
                                    double z_lower, double z_upper) {
  return (((((x_lower + x_upper) + y_lower) + y_upper) + z_lower) + z_upper) * (1.0 / 6.0);
}

class HostField {
 public:
  explicit HostField(const Range& range);

  // One Jacobi iteration: every point becomes the mean of its six neighbours.
  void update();

  // The points that one side of a block has.
  std::size_t face_points(int face) const;
  // Copies the outermost points of that side. REQUIRES: halo.size() == face_points(face).
  void pack(int face, std::span<double> halo) const;
  // Sets the ghost points of that side.
  void unpack(int face, std::span<const double> halo);

  // Without ghost points, z fastest.
  std::vector<double> values() const;
  // The sum, modulo 2^64, of each value's bits times 2 i + 1, i being its place in the whole grid: equal for
  // every decomposition of the same grid, and for every language.
  std::uint64_t checksum(const Triple& grid) const;

 private:
  // Offset of the point (x, y, z); -1 and size are ghost points.
  std::size_t offset(int x, int y, int z) const {
    return static_cast<std::size_t>(x + 1) * stride_[0] + static_cast<std::size_t>(y + 1) * stride_[1] +
           static_cast<std::size_t>(z + 1);
  }
  template <class Visit>
  void for_each_row_of(int face, int layer, Visit visit) const;

  Range range_;
  std::array<std::size_t, 3> stride_;
  std::vector<double> current_;
  std::vector<double> next_;
};

}  // namespace jacobi3d
