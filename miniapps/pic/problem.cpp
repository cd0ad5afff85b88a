#include "problem.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include "fmt/format.h"

namespace pic {
namespace {

// Plain loops: Python comes to the same bits.
std::vector<double> weights_of(const Problem& problem) {
  std::vector<double> weights;
  double geometric = 1;
  const double last = static_cast<double>(problem.size - 1);
  for (std::int64_t column = 0; column < problem.size; ++column) {
    const double at = static_cast<double>(column);
    switch (problem.distribution) {
      case Distribution::kGeometric:
        weights.push_back(geometric);
        geometric *= problem.ratio;
        break;
      case Distribution::kSinusoidal: {
        const double cosine = std::cos(2.0 * std::numbers::pi / last * at);
        weights.push_back(cosine * cosine);
        break;
      }
      case Distribution::kLinear:
        weights.push_back(problem.beta - problem.alpha * (at / last));
        break;
      case Distribution::kPatch:
        weights.push_back(column >= problem.patch.first_column && column < problem.patch.end_column ? 1 : 0);
        break;
      case Distribution::kUniform:
        weights.push_back(1);
        break;
    }
  }
  return weights;
}

// The remainder that is never negative.
std::int64_t modulo(std::int64_t value, std::int64_t size) { return (value % size + size) % size; }

struct Range {
  std::int64_t first;
  std::int64_t end;
};

Range range_of(std::int64_t size, std::int64_t num_blocks, std::int64_t number) {
  return {number * size / num_blocks, (number + 1) * size / num_blocks};
}

// Whether `reach` steps lead from a cell of one range to one of the other, around the periodic grid too.
bool reaches(std::int64_t size, std::int64_t reach, Range own, Range other) {
  if (own.first == other.first) return true;
  const std::int64_t forward = modulo(other.first - (own.end - 1), size);
  const std::int64_t backward = modulo(own.first - (other.end - 1), size);
  return std::min(forward, backward) <= reach;
}

// The blocks along one dimension that are reached from `own`, itself among them.
std::vector<std::int64_t> reached(std::int64_t size, std::int64_t num_blocks, std::int64_t reach,
                                  std::int64_t own) {
  std::vector<std::int64_t> found;
  for (std::int64_t number = 0; number < num_blocks; ++number) {
    if (reaches(size, reach, range_of(size, num_blocks, own), range_of(size, num_blocks, number))) {
      found.push_back(number);
    }
  }
  return found;
}

}  // namespace

Area Problem::area_of(std::int64_t block) const {
  const Range columns = range_of(size, blocks_x, block / blocks_y);
  const Range rows = range_of(size, blocks_y, block % blocks_y);
  return {columns.first, columns.end, rows.first, rows.end};
}

void check(const Problem& problem) {
  const std::int64_t size = problem.size;
  if (size % 2 != 0) {
    throw UserError(fmt::format(
        "--size must be even, not {}: charges alternate by column, and the grid is periodic", size));
  }
  if (size > kMaxSize || problem.particles > kMaxParticles) {
    throw UserError(
        fmt::format("--size must be at most {}, and --particles at most {}", kMaxSize, kMaxParticles));
  }
  if (problem.k > kMaxMove || std::abs(problem.m) > kMaxMove) {
    throw UserError(fmt::format("--k and --m must be at most {}", kMaxMove));
  }
  if (problem.distribution == Distribution::kGeometric && !(problem.ratio > 0 && problem.ratio <= 1)) {
    throw UserError(fmt::format("--ratio must be above 0 and at most 1, not {}", problem.ratio));
  }
  if (problem.distribution == Distribution::kLinear && !(problem.beta > 0 && problem.alpha <= problem.beta)) {
    throw UserError("--linear ALPHA BETA: BETA must be above 0, and ALPHA at most BETA");
  }
  const Area& patch = problem.patch;
  if (problem.distribution == Distribution::kPatch &&
      (patch.first_column < 0 || patch.columns() < 1 || patch.end_column > size || patch.first_row < 0 ||
       patch.rows() < 1 || patch.end_row > size)) {
    throw UserError(fmt::format(
        "--patch LEFT RIGHT BOTTOM TOP must lie in the grid of {} x {} cells, not ({}, {}, {}, {})", size,
        size, patch.first_column, patch.end_column - 1, patch.first_row, patch.end_row - 1));
  }
  if (problem.blocks_x > size || problem.blocks_y > size) {
    throw UserError(
        fmt::format("a grid of {} x {} cells cannot be cut into {} x {} blocks: take a larger --size, or a "
                    "smaller --odf",
                    size, size, problem.blocks_x, problem.blocks_y));
  }
}

void cut(Problem& problem, std::int64_t num_blocks, const std::string& split) {
  std::int64_t in_y = split == "y" ? num_blocks : 1;
  if (split == "2d") {
    for (std::int64_t n = 1; n * n <= num_blocks; ++n) {
      if (num_blocks % n == 0) in_y = n;
    }
  }
  problem.blocks_x = num_blocks / in_y;
  problem.blocks_y = in_y;
}

std::vector<std::int64_t> partners(const Problem& problem, std::int64_t block) {
  const std::int64_t blocks_y = problem.blocks_y;
  const std::vector<std::int64_t> in_y =
      reached(problem.size, blocks_y, std::abs(problem.m), block % blocks_y);
  std::vector<std::int64_t> found;
  for (std::int64_t i :
       reached(problem.size, problem.blocks_x, problem.columns_per_step(), block / blocks_y)) {
    for (std::int64_t j : in_y) {
      if (i * blocks_y + j != block) found.push_back(i * blocks_y + j);
    }
  }
  return found;
}

std::uint64_t hash_of(std::uint64_t value, std::uint64_t seed) {
  std::uint64_t z = value * 0x9E3779B97F4A7C15 + seed;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

Start::Start(const Problem& problem) : problem_(problem) {
  std::vector<double> sums{0};
  for (double weight : weights_of(problem)) sums.push_back(sums.back() + weight);
  // Shared out by weight, rounded such that the sum is exact.
  for (double sum : sums) {
    const double share = static_cast<double>(problem.particles) * (sum / sums.back());
    starts_.push_back(static_cast<std::int64_t>(std::floor(share + 0.5)));
  }
}

std::int64_t Start::column_of(std::int64_t id) const {
  return std::ranges::upper_bound(starts_, id - 1) - starts_.begin() - 1;
}

std::int64_t Start::row_of(std::int64_t id) const {
  const bool is_patch = problem_.distribution == Distribution::kPatch;
  const std::int64_t first = is_patch ? problem_.patch.first_row : 0;
  const auto count = static_cast<std::uint64_t>(is_patch ? problem_.patch.rows() : problem_.size);
  const std::uint64_t high = hash_of(static_cast<std::uint64_t>(id), problem_.seed) >> 32;
  return first + static_cast<std::int64_t>(high * count >> 32);
}

double Start::x_after(std::int64_t id, std::int64_t steps) const {
  return static_cast<double>(modulo(column_of(id) + steps * problem_.columns_per_step(), problem_.size)) +
         0.5;
}

double Start::y_after(std::int64_t id, std::int64_t steps) const {
  return static_cast<double>(modulo(row_of(id) + steps * problem_.m, problem_.size)) + 0.5;
}

Fields Start::particles_of(const Area& area) const {
  const double r_squared = 0.5 * 0.5 + 0.5 * 0.5;
  const double cosine = 0.5 / std::sqrt(r_squared);
  // By which a particle in the centre of a cell moves that many columns from rest in a step of time 1.
  const double charge =
      static_cast<double>(problem_.columns_per_step()) * (1.0 / (cosine / r_squared + cosine / r_squared));
  Fields fields;
  for (std::int64_t column = area.first_column; column < area.end_column; ++column) {
    const auto at = static_cast<std::size_t>(column);
    for (std::int64_t id = starts_[at] + 1; id <= starts_[at + 1]; ++id) {
      const std::int64_t row = row_of(id);
      if (row < area.first_row || row >= area.end_row) continue;
      fields[kX].push_back(static_cast<double>(column) + 0.5);
      fields[kY].push_back(static_cast<double>(row) + 0.5);
      fields[kVx].push_back(0);
      fields[kVy].push_back(static_cast<double>(problem_.m));
      fields[kCharge].push_back(column % 2 == 0 ? charge : -charge);
      fields[kId].push_back(static_cast<double>(id));
    }
  }
  return fields;
}

std::vector<double> grid_of(const Area& area) {
  std::vector<double> grid;
  for (std::int64_t column = area.first_column; column <= area.end_column; ++column) {
    grid.insert(grid.end(), static_cast<std::size_t>(area.rows() + 1), column % 2 == 0 ? 1.0 : -1.0);
  }
  return grid;
}

}  // namespace pic
