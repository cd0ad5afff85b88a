// How the grid is cut into blocks, and which PE each block lives on. Everything here is a function of sizes
// and counts alone, so that every PE comes to the same answer; jacobi3d.py's decomposition.py is the same in
// Python.
#pragma once

#include <array>
#include <cstddef>
#include <stdexcept>

#include "weft/weft.h"

namespace jacobi3d {

// What the user can mend: reported as one sentence.
struct UserError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Along x, y and z.
using Triple = std::array<int, 3>;

// The six faces of a block: 2 d is the lower one in dimension d, 2 d + 1 the upper one.
inline constexpr int kNumFaces = 6;
constexpr int dimension_of(int face) { return face / 2; }
constexpr bool is_upper(int face) { return face % 2 == 1; }
constexpr int opposite(int face) { return face ^ 1; }

struct Problem {
  Triple points{};  // of the whole grid, without its boundary
  Triple blocks{};  // in each dimension
};

// The part of the grid that a block computes.
struct Range {
  Triple first{};
  Triple size{};
};

inline std::size_t num_points(const Triple& size) {
  return static_cast<std::size_t>(size[0]) * static_cast<std::size_t>(size[1]) *
         static_cast<std::size_t>(size[2]);
}

// The numbers of blocks along x, y and z with `num_blocks` as their product that have the least area between
// blocks; of equals, the one with more cuts across x, then y, since those faces lie together in memory.
// Throws UserError when every choice leaves a block without a point.
Triple divide(const Triple& points, int num_blocks);

// The points of block `index`; sizes differ by at most one.
Range range_of(const Problem& problem, const Triple& index);

// The map of the chare array: each PE gets a brick of blocks, so that most neighbours share a PE.
// REQUIRES: the number of blocks is a multiple of the number of PEs.
int home_pe(const weft::Index& index, const weft::Shape& blocks, int num_pes);

}  // namespace jacobi3d
