// The serial solution and the balance of energy: the same arithmetic in the plainest form, sharing nothing with the blocks
// but the expression itself.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "body.h"

namespace heat3d {

struct Solution {
  std::vector<double> temperatures;  // z fastest
  // In units of temperature times points. Conduction adds nothing to the body's energy.
  double initial_energy = 0.0;
  double energy_in = 0.0;   // by the power that entered
  double energy_out = 0.0;  // by radiation

  double expected_energy() const { return initial_energy + energy_in - energy_out; }
};

Solution solve_serially(const Body& body, int num_steps);

double energy_of(std::span<const double> temperatures);

struct EnergyBalance {
  double energy = 0.0;
  double expected = 0.0;

  // Sums of rounded numbers agree to about 1e-15 times the square root of their count. The limit is far above that.
  static constexpr double kTolerance = 1e-10;
  double relative_error() const;
  bool is_right() const { return relative_error() <= kTolerance; }
  // One sentence.
  std::string describe() const;
};

}  // namespace heat3d
