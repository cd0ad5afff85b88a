// What is computed: the grid, the particles at the start and at the end, the blocks. pic_problem.py is the same in Python,
// and both programs come to the same bits.
//
// A grid of size x size cells is periodic in both dimensions; `size` is even. The grid point at the lower left corner of a
// cell has the cell's column and row. Points of even columns have the charge 1, those of odd columns -1. Particles start in
// the centres of cells, with charges by which each one moves 2 k + 1 columns and m rows in each step.
//
// Particle `id` is one of 1 to `particles`. Its first column and row follow from its id alone, so every block makes its own
// particles, and every particle can be checked without its history.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "command_line/user_error.h"

namespace pic {

// The numbers that a particle consists of, in this order: position, velocity, charge, id.
enum Field : std::uint8_t { kX, kY, kVx, kVy, kCharge, kId };
inline constexpr std::size_t kNumFields = 6;

// Places of grid points and of particles in a block are numbers of 32 bits.
inline constexpr std::int64_t kMaxSize = 40'000;
inline constexpr std::int64_t kMaxParticles = (std::int64_t{1} << 31) - 1;

// The largest k, and the largest |m|.
inline constexpr std::int64_t kMaxMove = 1'000'000;

// One array for each field.
using Fields = std::array<std::vector<double>, kNumFields>;

using miniapps::UserError;

enum class Distribution : std::uint8_t { kGeometric, kSinusoidal, kLinear, kPatch, kUniform };

// The cells of columns `first_column` to `end_column` - 1 and rows `first_row` to `end_row` - 1.
struct Area {
  std::int64_t first_column = 0;
  std::int64_t end_column = 0;
  std::int64_t first_row = 0;
  std::int64_t end_row = 0;

  std::int64_t columns() const { return end_column - first_column; }
  std::int64_t rows() const { return end_row - first_row; }
  bool contains(double x, double y) const {
    return x >= static_cast<double>(first_column) && x < static_cast<double>(end_column) &&
           y >= static_cast<double>(first_row) && y < static_cast<double>(end_row);
  }
  friend bool operator==(const Area&, const Area&) = default;
};

// The same on all PEs. `ratio` belongs to the geometric distribution, `alpha` and `beta` to the linear one, `patch` to the
// patch.
struct Problem {
  std::int64_t size = 2000;
  std::int64_t particles = 2'000'000;
  std::int64_t k = 0;
  std::int64_t m = 1;
  Distribution distribution = Distribution::kGeometric;
  double ratio = 0.997;
  double alpha = 1;
  double beta = 1;
  Area patch;
  std::uint64_t seed = 1;
  std::int64_t blocks_x = 1;
  std::int64_t blocks_y = 1;

  std::int64_t columns_per_step() const { return 2 * k + 1; }
  std::int64_t num_blocks() const { return blocks_x * blocks_y; }
  Area area_of(std::int64_t block) const;
};

// Throws UserError if there is no such problem.
void check(const Problem& problem);

// Sets the numbers of blocks: `split` is x, y, or 2d for blocks that are as square as possible.
void cut(Problem& problem, std::int64_t num_blocks, const std::string& split);

// The other blocks into which a particle of this one can get in a step, in either direction, and from which one comes. A
// step reaches 2 k + 1 columns and |m| rows. If blocks are smaller than that, particles jump over blocks.
std::vector<std::int64_t> partners(const Problem& problem, std::int64_t block);

// The `value`-th output of the generator SplitMix64 (Steele, Lea, Flood 2014) after `seed`.
std::uint64_t hash_of(std::uint64_t value, std::uint64_t seed);

// Where particles start.
class Start {
 public:
  explicit Start(const Problem& problem);

  // REQUIRES: 1 <= id <= particles.
  std::int64_t column_of(std::int64_t id) const;
  std::int64_t row_of(std::int64_t id) const;
  // Positions after that many steps.
  double x_after(std::int64_t id, std::int64_t steps) const;
  double y_after(std::int64_t id, std::int64_t steps) const;

  // The particles that start in the area.
  Fields particles_of(const Area& area) const;

 private:
  Problem problem_;
  std::vector<std::int64_t> starts_;  // element c: the number of particles that start in columns before c
};

// The charges of the points around the cells of an area, column by column: one more of each than there are cells.
std::vector<double> grid_of(const Area& area);

}  // namespace pic
