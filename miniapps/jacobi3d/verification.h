// The serial reference and the comparison with it: the same arithmetic in the plainest form, sharing nothing
// with the blocks but the expression itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decomposition.h"

namespace jacobi3d {

// The whole grid after `iterations`, without its boundary, z fastest.
std::vector<double> solve_serially(const Triple& points, int iterations);

// Puts a block's values where they belong in `grid`.
void place_block(const Triple& points, const Range& range, std::span<const double> values,
                 std::span<double> grid);

struct Comparison {
  std::size_t num_points = 0;
  std::size_t num_different = 0;  // in any bit
  double largest_difference = 0;
  Triple first{};  // the first point that differs
  double first_result = 0;
  double first_expected = 0;

  bool equal() const { return num_different == 0; }
  // One sentence.
  std::string describe() const;
};

// REQUIRES: both have the grid's number of points.
Comparison compare(const Triple& points, std::span<const double> result, std::span<const double> expected);

}  // namespace jacobi3d
