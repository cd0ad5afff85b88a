#include "kernels.h"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <stdexcept>

#include "fmt/format.h"

namespace pic {
namespace {

struct Force {
  double x;
  double y;
};

// Coulomb's law between two charges: the force along each dimension at these distances.
inline Force coulomb(double dx, double dy, double charge, double other) {
  const double square = dx * dx + dy * dy;
  const double r = std::sqrt(square);
  const double force = charge * other / square;
  return {force * dx / r, force * dy / r};
}

[[noreturn]] void refuse(const Fields& fields, std::size_t i) {
  throw std::runtime_error(fmt::format(
      "particle {} with velocity ({}, {}) and charge {} has got to ({}, {}), further than a step "
      "reaches",
      fields[kId][i], fields[kVx][i], fields[kVy][i], fields[kCharge][i], fields[kX][i], fields[kY][i]));
}

}  // namespace

void move(Fields& fields, std::span<const double> grid, const Geometry& geometry) {
  const auto first_column = static_cast<std::int32_t>(geometry.area.first_column);
  const auto first_row = static_cast<std::int32_t>(geometry.area.first_row);
  const auto points = static_cast<std::int32_t>(geometry.area.rows() + 1);
  const auto length = static_cast<double>(geometry.size);
  const double* const charges = grid.data();
  double* const xs = fields[kX].data();
  double* const ys = fields[kY].data();
  double* const vxs = fields[kVx].data();
  double* const vys = fields[kVy].data();
  const double* const own = fields[kCharge].data();
  const std::size_t count = fields[kX].size();
// No array overlaps another. g++ would need more checks at run time than it makes.
#if !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) {
    const auto column = static_cast<std::int32_t>(xs[i]);
    const auto row = static_cast<std::int32_t>(ys[i]);
    const double left = xs[i] - column;
    const double below = ys[i] - row;
    const double right = 1.0 - left;
    const double above = 1.0 - below;
    const std::int32_t at = (column - first_column) * points + (row - first_row);
    const Force lower_left = coulomb(left, below, own[i], charges[at]);
    const Force upper_left = coulomb(left, above, own[i], charges[at + 1]);
    const Force lower_right = coulomb(right, below, own[i], charges[at + points]);
    const Force upper_right = coulomb(right, above, own[i], charges[at + points + 1]);
    const double fx = lower_left.x + upper_left.x - lower_right.x - upper_right.x;
    const double fy = lower_left.y - upper_left.y + lower_right.y - upper_right.y;
    const double x = xs[i] + vxs[i] + 0.5 * fx;
    const double y = ys[i] + vys[i] + 0.5 * fy;
    xs[i] = x - length * std::floor(x / length);
    ys[i] = y - length * std::floor(y / length);
    vxs[i] += fx;
    vys[i] += fy;
  }
}

void find_leaving(const Fields& fields, const Geometry& geometry, std::vector<Leaving>& leaving,
                  std::vector<std::size_t>& counts) {
  const auto length = static_cast<double>(geometry.size);
  leaving.clear();
  std::ranges::fill(counts, 0);
  for (std::size_t i = 0; i < fields[kX].size(); ++i) {
    const double x = fields[kX][i];
    const double y = fields[kY][i];
    if (geometry.area.contains(x, y)) continue;
    if (!(x >= 0 && x < length && y >= 0 && y < length)) refuse(fields, i);
    const std::int64_t in_x = ((static_cast<std::int64_t>(x) + 1) * geometry.blocks_x - 1) / geometry.size;
    const std::int64_t in_y = ((static_cast<std::int64_t>(y) + 1) * geometry.blocks_y - 1) / geometry.size;
    const std::int32_t slot =
        geometry.slot_of_block[static_cast<std::size_t>(in_x * geometry.blocks_y + in_y)];
    if (slot < 0) refuse(fields, i);
    leaving.push_back({static_cast<std::int32_t>(i), slot});
    ++counts[static_cast<std::size_t>(slot)];
  }
}

void take_out(Fields& fields, std::span<const Leaving> leaving, std::span<const std::size_t> counts,
              std::span<double> outgoing) {
  std::vector<std::size_t> places(counts.size());
  for (std::size_t slot = 0; slot + 1 < counts.size(); ++slot) {
    places[slot + 1] = places[slot] + kNumFields * counts[slot];
  }
  std::size_t count = fields[kX].size();
  for (const Leaving& gone : std::views::reverse(leaving)) {
    const auto slot = static_cast<std::size_t>(gone.slot);
    const auto place = static_cast<std::size_t>(gone.place);
    std::size_t at = places[slot]++;
    --count;
    for (std::vector<double>& field : fields) {
      outgoing[at] = field[place];
      at += counts[slot];
      field[place] = field[count];
    }
  }
  for (std::vector<double>& field : fields) field.resize(count);
}

void put_in(Fields& fields, std::span<const double> incoming, const Area& area) {
  const std::size_t number = incoming.size() / kNumFields;
  if (number * kNumFields != incoming.size()) {
    throw std::runtime_error(fmt::format("{} numbers have arrived, which are no particles", incoming.size()));
  }
  for (std::size_t i = 0; i < number; ++i) {
    if (!area.contains(incoming[i], incoming[number + i])) {
      throw std::runtime_error("a particle has arrived that is not in this block");
    }
  }
  for (std::size_t f = 0; f < kNumFields; ++f) {
    const std::span<const double> arrived = incoming.subspan(f * number, number);
    fields[f].insert(fields[f].end(), arrived.begin(), arrived.end());
  }
}

}  // namespace pic
