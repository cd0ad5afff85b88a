// The grid, its blocks and their faces, and the arithmetic on their points: what all kernels share. Nothing
// here is Weft's, so that a GPU's compiler needs to know nothing of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace jacobi3d {

// Along x, y and z.
using Triple = std::array<int, 3>;

// The six faces of a block: 2 d is the lower one in dimension d, 2 d + 1 the upper one.
inline constexpr int kNumFaces = 6;
constexpr int dimension_of(int face) { return face / 2; }
constexpr bool is_upper(int face) { return face % 2 == 1; }
constexpr int opposite(int face) { return face ^ 1; }

// The part of the grid that a block computes.
struct Range {
  Triple first{};
  Triple size{};
};

constexpr std::size_t num_points(const Triple& size) {
  return static_cast<std::size_t>(size[0]) * static_cast<std::size_t>(size[1]) *
         static_cast<std::size_t>(size[2]);
}

// What every point holds at the start and every boundary point for ever; coordinates run from -1 (boundary)
// to the number of points (boundary). Differs between neighbours, so that a halo in a wrong place shows;
// exact in binary.
constexpr double initial_value(std::int64_t x, std::int64_t y, std::int64_t z) {
  return static_cast<double>(((x + 1) * 73 + (y + 1) * 179 + (z + 1) * 283) % 1009) / 1024.0;
}

// The mean of the six neighbours. Adding in this order is what makes results equal to the last bit
// everywhere; no product is added to anything, so there is nothing to fuse either.
constexpr double mean_of_neighbours(double x_lower, double x_upper, double y_lower, double y_upper,
                                    double z_lower, double z_upper) {
  return (((((x_lower + x_upper) + y_lower) + y_upper) + z_lower) + z_upper) * (1.0 / 6.0);
}

// How a block of `size` points lies in memory: with one layer of ghost points around it, z fastest.
struct Layout {
  constexpr explicit Layout(const Triple& size_in) : size(size_in) {}

  constexpr std::size_t z_stride() const { return 1; }
  constexpr std::size_t y_stride() const { return static_cast<std::size_t>(size[2] + 2); }
  constexpr std::size_t x_stride() const { return static_cast<std::size_t>(size[1] + 2) * y_stride(); }
  // Values in memory.
  constexpr std::size_t num_values() const { return static_cast<std::size_t>(size[0] + 2) * x_stride(); }
  // Of the point (x, y, z); -1 and size are ghost points.
  constexpr std::size_t offset(int x, int y, int z) const {
    return static_cast<std::size_t>(x + 1) * x_stride() + static_cast<std::size_t>(y + 1) * y_stride() +
           static_cast<std::size_t>(z + 1);
  }

  // A face's points are numbered in rows: its first dimension that is not its own, then its second.
  constexpr int face_rows(int face) const { return dimension_of(face) == 0 ? size[1] : size[0]; }
  constexpr int face_columns(int face) const { return dimension_of(face) == 2 ? size[1] : size[2]; }
  constexpr std::size_t face_points(int face) const {
    return static_cast<std::size_t>(face_rows(face)) * static_cast<std::size_t>(face_columns(face));
  }
  // The layer of points next to that face, and of ghost points behind it, along the face's dimension.
  constexpr int outermost_layer(int face) const { return is_upper(face) ? last_layer(face) : 0; }
  constexpr int ghost_layer(int face) const { return is_upper(face) ? last_layer(face) + 1 : -1; }
  // Of the point in `row` and `column` of a layer parallel to `face`.
  constexpr std::size_t face_offset(int face, int layer, int row, int column) const {
    if (dimension_of(face) == 0) return offset(layer, row, column);
    if (dimension_of(face) == 1) return offset(row, layer, column);
    return offset(row, column, layer);
  }

  Triple size;

 private:
  constexpr int last_layer(int face) const {
    return (dimension_of(face) == 0 ? size[0] : dimension_of(face) == 1 ? size[1] : size[2]) - 1;
  }
};

}  // namespace jacobi3d
