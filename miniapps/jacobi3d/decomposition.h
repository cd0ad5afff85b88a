// How the grid is cut into blocks, and which PE each block lives on. Everything here is a function of sizes
// and counts alone, so all PEs compute the same result. decomposition.py is the same in Python.
#pragma once

#include <vector>

#include "weft/weft.h"

#include "command_line/user_error.h"
#include "grid.h"

namespace jacobi3d {

using miniapps::UserError;

struct Problem {
  Triple points{};  // of the whole grid, without its boundary
  Triple blocks{};  // in each dimension
};

// The numbers of blocks along x, y and z with `num_blocks` as their product that have the least area between
// blocks; of equals, the one with more cuts across x, then y, since those faces lie together in memory.
// Throws UserError when every choice leaves a block without a point.
Triple divide(const Triple& points, int num_blocks);

// The points of block `index`; sizes differ by at most one.
Range range_of(const Problem& problem, const Triple& index);

// The faces of block `index` that have a neighbour, and the index of the neighbour at one of them.
std::vector<int> faces_inside(const Problem& problem, const Triple& index);
weft::Index neighbour_of(const Triple& index, int face);

// The map of the chare array: each PE gets a brick of blocks, so that most neighbours share a PE.
// REQUIRES: the number of blocks is a multiple of the number of PEs.
int home_pe(const weft::Index& index, const weft::Shape& blocks, int num_pes);

}  // namespace jacobi3d
