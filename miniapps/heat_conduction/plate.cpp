#include "plate.h"

#include <numbers>

namespace heat_conduction {

namespace {

// The waves at the start: half waves along rows and columns, and the amplitude.
struct Wave {
  int rows, columns;
  double amplitude;
};
constexpr Wave kWaves[] = {{1, 1, 1.0}, {3, 2, 0.5}};

double squared_sine(double x) { return std::sin(x) * std::sin(x); }

}  // namespace

double temperature(int size, int row, int column, int num_steps) {
  const double spacing = std::numbers::pi / (size + 1);
  double total = 0.0;
  for (const Wave& wave : kWaves) {
    const double shrink =
        1.0 -
        4.0 * kRate * (squared_sine(wave.rows * spacing / 2) + squared_sine(wave.columns * spacing / 2));
    total += wave.amplitude * std::pow(shrink, num_steps) * std::sin(wave.rows * spacing * (row + 1)) *
             std::sin(wave.columns * spacing * (column + 1));
  }
  return total;
}

std::vector<double> temperatures(const Problem& problem, int strip, int num_steps) {
  std::vector<double> points;
  const int first = problem.first_row(strip) - 1;
  const int last = problem.first_row(strip + 1);
  for (int row = first; row <= last; ++row) {
    for (int column = -1; column <= problem.size; ++column)
      points.push_back(temperature(problem.size, row, column, num_steps));
  }
  return points;
}

double largest_error(const Problem& problem, int strip, int num_steps, const double* points) {
  const std::vector<double> exact = temperatures(problem, strip, num_steps);
  const std::size_t width = problem.width();
  double error = 0.0;
  for (std::size_t i = 1; i <= problem.num_rows(strip); ++i) {
    for (std::size_t at = i * width + 1; at + 1 < (i + 1) * width; ++at)
      error = std::max(error, std::abs(points[at] - exact[at]));
  }
  return error;
}

}  // namespace heat_conduction
