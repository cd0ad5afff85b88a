#include "solution.h"

#include <algorithm>
#include <cmath>

#include "fmt/format.h"

namespace heat3d {
namespace {

// The sum of many numbers with the rounding errors collected beside it (Neumaier).
class ExactSum {
 public:
  void add(double value) {
    const double sum = sum_ + value;
    error_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  double value() const { return sum_ + error_; }

 private:
  double sum_ = 0.0;
  double error_ = 0.0;
};

class SerialBody {
 public:
  explicit SerialBody(const Body& body)
      : body_(body),
        current_(jacobi3d::num_points(body.points), body.initial_temperature),
        next_(current_.size()) {}

  void step(double power, ExactSum& energy_in, ExactSum& energy_out) {
    for (int x = 0; x < body_.points[0]; ++x) {
      for (int y = 0; y < body_.points[1]; ++y) {
        for (int z = 0; z < body_.points[2]; ++z) {
          const double own = current_[index(x, y, z)];
          const int outer_sides = num_outer_sides(x, body_.points[0]) + num_outer_sides(y, body_.points[1]) +
                                  num_outer_sides(z, body_.points[2]);
          const double power_here = x == 0 ? power : 0.0;
          const Neighbourhood at{own,
                                 inside(x - 1, y, z, own),
                                 inside(x + 1, y, z, own),
                                 inside(x, y - 1, z, own),
                                 inside(x, y + 1, z, own),
                                 inside(x, y, z - 1, own),
                                 inside(x, y, z + 1, own)};
          next_[index(x, y, z)] = next_temperature(body_, at, outer_sides, power_here);
          energy_in.add(body_.time_step * power_here);
          energy_out.add(body_.time_step * body_.radiation * std::pow(own, 4) * outer_sides);
        }
      }
    }
    current_.swap(next_);
  }

  std::vector<double>& temperatures() { return current_; }

 private:
  std::size_t index(int x, int y, int z) const {
    const auto ny = static_cast<std::size_t>(body_.points[1]), nz = static_cast<std::size_t>(body_.points[2]);
    return (static_cast<std::size_t>(x) * ny + static_cast<std::size_t>(y)) * nz +
           static_cast<std::size_t>(z);
  }
  double inside(int x, int y, int z, double own) const {
    const bool is_inside =
        x >= 0 && x < body_.points[0] && y >= 0 && y < body_.points[1] && z >= 0 && z < body_.points[2];
    return is_inside ? current_[index(x, y, z)] : own;
  }

  Body body_;
  std::vector<double> current_;
  std::vector<double> next_;
};

}  // namespace

Solution solve_serially(const Body& body, int num_steps) {
  SerialBody serial(body);
  ExactSum energy_in, energy_out;
  Solution solution;
  solution.initial_energy = energy_of(serial.temperatures());
  for (int i = 0; i < num_steps; ++i)
    serial.step(i < body.power_steps ? body.power : 0.0, energy_in, energy_out);
  solution.energy_in = energy_in.value();
  solution.energy_out = energy_out.value();
  solution.temperatures = std::move(serial.temperatures());
  return solution;
}

double energy_of(std::span<const double> temperatures) {
  ExactSum sum;
  for (double temperature : temperatures) sum.add(temperature);
  return sum.value();
}

double EnergyBalance::relative_error() const {
  const double error = std::abs(energy - expected);
  const double size = std::max(std::abs(energy), std::abs(expected));
  if (std::isnan(error)) return INFINITY;
  return size > 0.0 ? error / size : 0.0;
}

std::string EnergyBalance::describe() const {
  return fmt::format("the body has the energy {:.12g}, and {:.12g} by what entered and was radiated: {}",
                     energy, expected, is_right() ? "conserved" : "NOT conserved");
}

}  // namespace heat3d
