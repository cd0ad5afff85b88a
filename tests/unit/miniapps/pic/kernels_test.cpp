#include "kernels.h"

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "gtest/gtest.h"

namespace pic {
namespace {

Problem uniform_problem() {
  Problem problem;
  problem.size = 8;
  problem.particles = 5;
  problem.k = 1;
  problem.m = -2;
  problem.distribution = Distribution::kUniform;
  return problem;
}

Geometry geometry_of(const Problem& problem, const Area& area) { return {problem.size, area, 2, 1, {-1, 0}}; }

TEST(MoveTest, ParticlesMoveByWholeCellsAroundTheGrid) {
  const Problem problem = uniform_problem();
  const Area all{0, 8, 0, 8};
  const Start start(problem);
  Fields fields = start.particles_of(all);
  const std::vector<double> grid = grid_of(all);
  for (std::int64_t steps = 1; steps <= 50; ++steps) {
    move(fields, grid, geometry_of(problem, all));
    for (std::size_t i = 0; i < fields[kX].size(); ++i) {
      const auto id = static_cast<std::int64_t>(fields[kId][i]);
      EXPECT_NEAR(fields[kX][i], start.x_after(id, steps), 1e-9);
      EXPECT_NEAR(fields[kY][i], start.y_after(id, steps), 1e-9);
    }
  }
}

TEST(LeavingTest, ParticlesAreTakenOutAndTheOthersStay) {
  const Problem problem = uniform_problem();
  const Geometry geometry = geometry_of(problem, {0, 4, 0, 8});
  Fields fields;
  for (std::size_t field = 0; field < kNumFields; ++field) {
    const double first = 10.0 * static_cast<double>(field);
    fields[field] = {first, first + 1, first + 2, first + 3};
  }
  fields[kX] = {4.5, 1.5, 2.5, 7.5};
  fields[kY] = {0.5, 1.5, 2.5, 3.5};
  std::vector<Leaving> leaving;
  std::vector<std::size_t> counts(1);
  find_leaving(fields, geometry, leaving, counts);
  ASSERT_EQ(leaving.size(), 2U);
  EXPECT_EQ(counts, (std::vector<std::size_t>{2}));
  std::vector<double> outgoing(2 * kNumFields);
  take_out(fields, leaving, counts, outgoing);
  EXPECT_EQ(outgoing, (std::vector<double>{7.5, 4.5, 3.5, 0.5, 23, 20, 33, 30, 43, 40, 53, 50}));
  EXPECT_EQ(fields[kX], (std::vector<double>{2.5, 1.5}));
  EXPECT_EQ(fields[kId], (std::vector<double>{52, 51}));

  Fields other;
  put_in(other, outgoing, {4, 8, 0, 8});
  EXPECT_EQ(other[kX], (std::vector<double>{7.5, 4.5}));
  EXPECT_EQ(other[kId], (std::vector<double>{53, 50}));
}

TEST(LeavingTest, AParticleThatIsNowhereIsRefused) {
  const Problem problem = uniform_problem();
  std::vector<Leaving> leaving;
  std::vector<std::size_t> counts(1);
  Geometry geometry = geometry_of(problem, {0, 4, 0, 8});
  for (double x : {-0.5, 8.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    Fields fields;
    for (std::vector<double>& field : fields) field = {1.5};
    fields[kX] = {x};
    EXPECT_THROW(find_leaving(fields, geometry, leaving, counts), std::runtime_error) << x;
  }
  geometry.slot_of_block = {-1, -1};
  Fields fields;
  for (std::vector<double>& field : fields) field = {5.5};
  EXPECT_THROW(find_leaving(fields, geometry, leaving, counts), std::runtime_error) << "no partner";
}

TEST(PutInTest, AMessageThatIsWrongIsRefused) {
  Fields fields;
  EXPECT_THROW(put_in(fields, std::vector<double>(5), {0, 8, 0, 8}), std::runtime_error) << "half a particle";
  EXPECT_THROW(put_in(fields, std::vector<double>(kNumFields, 4.5), {0, 4, 0, 8}), std::runtime_error)
      << "of another block";
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(put_in(fields, std::vector<double>(kNumFields, nan), {0, 4, 0, 8}), std::runtime_error);
  EXPECT_TRUE(fields[kX].empty());
  put_in(fields, {}, {0, 4, 0, 8});
  EXPECT_TRUE(fields[kX].empty());
}

}  // namespace
}  // namespace pic
