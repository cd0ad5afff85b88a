// A checksum of the bits of a plate.
#pragma once

#include <bit>
#include <cstdint>

#include "plate.h"

namespace heat_conduction {

// Of a strip: the sum, modulo 2^64, of each value's bits times 2 i + 1, i being its place in the plate. `points` begin with a ghost row.
inline std::uint64_t checksum_of(const Problem& problem, int strip, const double* points) {
  const std::size_t width = problem.width();
  std::uint64_t place = static_cast<std::uint64_t>(problem.first_row(strip)) * width;
  std::uint64_t sum = 0;
  for (std::size_t i = width; i < (problem.num_rows(strip) + 1) * width; ++i, ++place)
    sum += std::bit_cast<std::uint64_t>(points[i]) * (2 * place + 1);
  return sum;
}

}  // namespace heat_conduction
