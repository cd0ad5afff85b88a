#include "problem.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace pic {
namespace {

constexpr Distribution kAll[] = {Distribution::kGeometric, Distribution::kSinusoidal, Distribution::kLinear,
                                 Distribution::kPatch, Distribution::kUniform};

Problem problem_of(Distribution distribution) {
  Problem problem;
  problem.size = 20;
  problem.particles = 1000;
  problem.distribution = distribution;
  problem.ratio = 0.8;
  problem.alpha = 2;
  problem.beta = 2;
  problem.patch = {3, 9, 4, 7};
  return problem;
}

std::size_t count_in(const Problem& problem, const Area& area) {
  return Start(problem).particles_of(area)[kX].size();
}

TEST(StartTest, BlocksHaveEveryParticleOnce) {
  for (Distribution distribution : kAll) {
    for (const char* split : {"x", "y", "2d"}) {
      Problem problem = problem_of(distribution);
      cut(problem, 6, split);
      std::set<double> ids;
      for (std::int64_t block = 0; block < 6; ++block) {
        const Fields fields = Start(problem).particles_of(problem.area_of(block));
        for (double id : fields[kId]) EXPECT_TRUE(ids.insert(id).second) << id;
        for (std::size_t i = 0; i < fields[kX].size(); ++i) {
          EXPECT_TRUE(problem.area_of(block).contains(fields[kX][i], fields[kY][i]));
        }
      }
      EXPECT_EQ(ids.size(), 1000U);
      EXPECT_EQ(*ids.begin(), 1);
      EXPECT_EQ(*ids.rbegin(), 1000);
    }
  }
}

TEST(StartTest, ColumnsAreWeighted) {
  const Problem geometric = problem_of(Distribution::kGeometric);
  EXPECT_EQ(count_in(geometric, {0, 1, 0, 20}), 202U) << "1000 (1 - r) / (1 - r^20), rounded";
  EXPECT_EQ(count_in(geometric, {1, 2, 0, 20}), 162U);
  EXPECT_EQ(count_in(problem_of(Distribution::kPatch), {3, 9, 4, 7}), 1000U);
  EXPECT_EQ(count_in(problem_of(Distribution::kUniform), {0, 1, 0, 20}), 50U);
  EXPECT_EQ(count_in(problem_of(Distribution::kLinear), {0, 1, 0, 20}), 100U);
  EXPECT_EQ(count_in(problem_of(Distribution::kLinear), {19, 20, 0, 20}), 0U);
  const Problem sinusoidal = problem_of(Distribution::kSinusoidal);
  EXPECT_GT(count_in(sinusoidal, {0, 1, 0, 20}), 10 * count_in(sinusoidal, {5, 6, 0, 20}));
}

TEST(PartnersTest, AreMutualAndReached) {
  for (const char* split : {"x", "y", "2d"}) {
    for (std::int64_t k : {0, 1, 4, 30}) {
      for (std::int64_t m : {-7, 0, 1, 25}) {
        Problem problem = problem_of(Distribution::kUniform);
        problem.k = k;
        problem.m = m;
        cut(problem, 6, split);
        for (std::int64_t block = 0; block < 6; ++block) {
          const std::vector<std::int64_t> mine = partners(problem, block);
          EXPECT_EQ(std::ranges::count(mine, block), 0);
          for (std::int64_t other : mine) {
            EXPECT_EQ(std::ranges::count(partners(problem, other), block), 1);
          }
        }
      }
    }
  }
}

TEST(PartnersTest, AreTheNeighboursIfBlocksAreLarge) {
  Problem problem = problem_of(Distribution::kUniform);
  cut(problem, 5, "x");
  EXPECT_EQ(partners(problem, 0), (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(partners(problem, 2), (std::vector<std::int64_t>{1, 3}));
  problem.k = 2;  // 5 columns, and blocks have 4
  EXPECT_EQ(partners(problem, 2), (std::vector<std::int64_t>{0, 1, 3, 4}));
  cut(problem, 2, "x");
  EXPECT_EQ(partners(problem, 0), (std::vector<std::int64_t>{1})) << "on both sides";
  cut(problem, 1, "x");
  EXPECT_TRUE(partners(problem, 0).empty());
}

TEST(CutTest, SplitsAsAsked) {
  Problem problem = problem_of(Distribution::kUniform);
  cut(problem, 12, "2d");
  EXPECT_EQ(problem.blocks_x, 4);
  EXPECT_EQ(problem.blocks_y, 3);
  cut(problem, 12, "y");
  EXPECT_EQ(problem.blocks_x, 1);
}

TEST(CheckTest, RefusesWhatIsNoProblem) {
  for (Distribution distribution : kAll) EXPECT_NO_THROW(check(problem_of(distribution)));
  const auto refused = [](auto change, Distribution distribution = Distribution::kUniform) {
    Problem problem = problem_of(distribution);
    change(problem);
    EXPECT_THROW(check(problem), UserError);
  };
  refused([](Problem& problem) { problem.size = 21; });
  refused([](Problem& problem) { problem.size = kMaxSize + 2; });
  refused([](Problem& problem) { problem.particles = kMaxParticles + 1; });
  refused([](Problem& problem) { problem.m = -kMaxMove - 1; });
  refused([](Problem& problem) { problem.k = kMaxMove + 1; });
  refused([](Problem& problem) { cut(problem, 21, "x"); });
  refused([](Problem& problem) { problem.ratio = 1.5; }, Distribution::kGeometric);
  refused([](Problem& problem) { problem.alpha = 3; }, Distribution::kLinear);
  refused([](Problem& problem) { problem.patch.end_row = 21; }, Distribution::kPatch);
}

}  // namespace
}  // namespace pic
