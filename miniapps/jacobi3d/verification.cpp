#include "verification.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "fmt/format.h"

#include "field.h"

namespace jacobi3d {

std::vector<double> solve_serially(const Triple& points, int iterations) {
  const int nx = points[0], ny = points[1], nz = points[2];
  auto at = [&](int x, int y, int z) {
    return (static_cast<std::size_t>(x) * static_cast<std::size_t>(ny) + static_cast<std::size_t>(y)) *
               static_cast<std::size_t>(nz) +
           static_cast<std::size_t>(z);
  };
  std::vector<double> current(num_points(points));
  for (int x = 0; x < nx; ++x) {
    for (int y = 0; y < ny; ++y) {
      for (int z = 0; z < nz; ++z) current[at(x, y, z)] = initial_value(x, y, z);
    }
  }
  std::vector<double> next(current.size());
  auto value = [&](int x, int y, int z) {
    bool inside = x >= 0 && x < nx && y >= 0 && y < ny && z >= 0 && z < nz;
    return inside ? current[at(x, y, z)] : initial_value(x, y, z);
  };
  for (int iteration = 0; iteration < iterations; ++iteration) {
    for (int x = 0; x < nx; ++x) {
      for (int y = 0; y < ny; ++y) {
        for (int z = 0; z < nz; ++z) {
          next[at(x, y, z)] = mean_of_neighbours(value(x - 1, y, z), value(x + 1, y, z), value(x, y - 1, z),
                                                 value(x, y + 1, z), value(x, y, z - 1), value(x, y, z + 1));
        }
      }
    }
    current.swap(next);
  }
  return current;
}

void place_block(const Triple& points, const Range& range, std::span<const double> values,
                 std::span<double> grid) {
  const auto depth = static_cast<std::size_t>(range.size[2]);
  const double* from = values.data();
  for (int x = 0; x < range.size[0]; ++x) {
    for (int y = 0; y < range.size[1]; ++y, from += depth) {
      std::size_t line = static_cast<std::size_t>(range.first[0] + x) * static_cast<std::size_t>(points[1]) +
                         static_cast<std::size_t>(range.first[1] + y);
      std::copy_n(from, depth,
                  grid.data() + line * static_cast<std::size_t>(points[2]) +
                      static_cast<std::size_t>(range.first[2]));
    }
  }
}

Comparison compare(const Triple& points, std::span<const double> result, std::span<const double> expected) {
  Comparison comparison;
  comparison.num_points = expected.size();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<std::uint64_t>(result[i]) == std::bit_cast<std::uint64_t>(expected[i])) continue;
    if (comparison.num_different++ == 0) {
      auto ny = static_cast<std::size_t>(points[1]), nz = static_cast<std::size_t>(points[2]);
      comparison.first = {static_cast<int>(i / nz / ny), static_cast<int>(i / nz % ny),
                          static_cast<int>(i % nz)};
      comparison.first_result = result[i];
      comparison.first_expected = expected[i];
    }
    double difference = std::abs(result[i] - expected[i]);
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    comparison.largest_difference = std::max(comparison.largest_difference, difference);
  }
  return comparison;
}

std::string Comparison::describe() const {
  if (equal())
    return fmt::format("all {} values equal those of the serial reference to the last bit", num_points);
  return fmt::format(
      "{} of {} values differ from the serial reference, by up to {}; the first is point ({}, {}, {}): {} "
      "instead of {}",
      num_different, num_points, largest_difference, first[0], first[1], first[2], first_result,
      first_expected);
}

}  // namespace jacobi3d
