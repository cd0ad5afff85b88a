#include "solution.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace heat3d {
namespace {

Body body_of(const Triple& points) {
  Body body;
  body.points = points;
  return body;
}

TEST(SolutionTest, PowerAloneIsTheEnergyThatEntered) {
  Body body = body_of({4, 3, 5});
  body.radiation = 0.0;
  body.power_steps = 6;
  const Solution solution = solve_serially(body, 10);
  EXPECT_NEAR(solution.energy_in, 0.1 * 1.0 * 15 * 6, 1e-13) << "15 points, 6 steps";
  EXPECT_EQ(solution.energy_out, 0.0);
  EXPECT_NEAR(energy_of(solution.temperatures), solution.energy_in, 1e-13) << "conduction adds nothing";
  EXPECT_GT(solution.temperatures.front(), solution.temperatures.back()) << "the side x = 0 is the warm one";
}

TEST(SolutionTest, OnePointRadiatesOnSixSides) {
  Body body = body_of({1, 1, 1});
  body.initial_temperature = 0.5;
  const Solution solution = solve_serially(body, 1);
  EXPECT_DOUBLE_EQ(solution.temperatures[0], 0.5 - 0.1 * 0.0625 * 6);
  EXPECT_DOUBLE_EQ(solution.expected_energy(), solution.temperatures[0]);
}

TEST(SolutionTest, EnergyIsConserved) {
  Body body = body_of({6, 5, 4});
  body.initial_temperature = 0.75;
  body.power_steps = 20;
  const Solution solution = solve_serially(body, 40);
  EXPECT_GT(solution.energy_out, 0.1);
  const EnergyBalance balance{energy_of(solution.temperatures), solution.expected_energy()};
  EXPECT_TRUE(balance.is_right()) << balance.describe();
}

TEST(SolutionTest, AWrongEnergyIsNoticed) {
  EXPECT_FALSE((EnergyBalance{1.0 + 1e-9, 1.0}.is_right()));
  EXPECT_FALSE((EnergyBalance{std::numeric_limits<double>::quiet_NaN(), 1.0}.is_right()));
  EXPECT_NE((EnergyBalance{2.0, 1.0}.describe().find("NOT conserved")), std::string::npos);
  EXPECT_TRUE((EnergyBalance{0.0, 0.0}.is_right()));
}

TEST(SolutionTest, SumsOfManySmallNumbersLoseNothing) {
  std::vector<double> numbers(1'000'000, 1e-16);
  numbers[0] = 1.0;
  EXPECT_DOUBLE_EQ(energy_of(numbers), 1.0 + 999'999 * 1e-16);
}

}  // namespace
}  // namespace heat3d
