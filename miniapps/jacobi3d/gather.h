// The whole grid, put together on the PE that asks. heat3d uses it too.
#pragma once

#include <cstddef>
#include <vector>

#include "weft/weft.h"

#include "decomposition.h"
#include "verification.h"

namespace jacobi3d {

// Without its boundary, z fastest. A Block has an entry method values() that returns its points.
template <class Block>
weft::Task<std::vector<double>> gather(weft::Array<Block> blocks, Problem problem) {
  std::vector<std::vector<double>> parts = co_await blocks.template call<&Block::values>();
  std::vector<double> grid(num_points(problem.points));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    weft::Index index = blocks.shape().index(i);
    place_block(problem.points, range_of(problem, {index[0], index[1], index[2]}), parts[i], grid);
  }
  co_return grid;
}

}  // namespace jacobi3d
