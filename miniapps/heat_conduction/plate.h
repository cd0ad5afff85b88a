// The plate: how it is cut into strips, its exact temperatures, and a step of its rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace heat_conduction {

inline constexpr double kRate = 0.2;  // of the difference to the neighbours that flows in a step
inline constexpr double kTolerance = 1e-10;

// A plate of size x size points within its edges.
struct Problem {
  int size, num_strips, check_every;
  double until;

  int first_row(int strip) const {
    return static_cast<int>(static_cast<long long>(size) * strip / num_strips);
  }
  std::size_t num_rows(int strip) const {
    return static_cast<std::size_t>(first_row(strip + 1) - first_row(strip));
  }
  std::size_t width() const { return static_cast<std::size_t>(size) + 2; }
};

// The exact temperature of a point after `num_steps`. Rows and columns count from 0; -1 and size are edges.
double temperature(int size, int row, int column, int num_steps);
// Those of the rows of a strip, with a ghost row above and below, and the edges left and right.
std::vector<double> temperatures(const Problem& problem, int strip, int num_steps);
// The largest difference from the exact ones, without ghost rows and edges.
double largest_error(const Problem& problem, int strip, int num_steps, const double* points);

// A step of rows 1 to num_rows, without their edges.
inline void update_rows(const double* now, double* next, std::size_t num_rows, std::size_t width) {
  for (std::size_t i = 1; i <= num_rows; ++i) {
    for (std::size_t at = i * width + 1; at + 1 < (i + 1) * width; ++at) {
      const double around = now[at - width] + now[at + width] + now[at - 1] + now[at + 1];
      next[at] = now[at] + kRate * (around - 4.0 * now[at]);
    }
  }
}

// The largest absolute value of rows 1 to num_rows.
inline double hottest_of(const double* points, std::size_t num_rows, std::size_t width) {
  double hottest = 0.0;
  for (std::size_t i = width; i < (num_rows + 1) * width; ++i)
    hottest = std::max(hottest, std::abs(points[i]));
  return hottest;
}

}  // namespace heat_conduction
