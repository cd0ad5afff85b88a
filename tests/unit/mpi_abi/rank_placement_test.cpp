#include "ranks/rank_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <vector>

namespace weft::mpi {
namespace {

class RankPlacement : public ::testing::Test {
 protected:
  ~RankPlacement() override {
    unsetenv("WEFT_LB");
    read_balance_settings();
  }
};

TEST_F(RankPlacement, AnEmptyPeKeepsItsLightestRank) {
  const RankMap map({0, 0, 1, 1, 1, 2}, 3);
  std::vector<int> places(6, 0);
  keep_a_rank_on_each_pe(map, {1, 1, 5, 2, 3, 7}, places);
  EXPECT_EQ(places, (std::vector<int>{0, 0, 0, 1, 0, 2}));
}

TEST_F(RankPlacement, PlacesThatUseAllPesStay) {
  const RankMap map({0, 0, 1}, 2);
  std::vector<int> places = {1, 1, 0};
  keep_a_rank_on_each_pe(map, {1, 1, 1}, places);
  EXPECT_EQ(places, (std::vector<int>{1, 1, 0}));
}

// The rank that goes back may be the only one of its new PE.
TEST_F(RankPlacement, APeThatLosesItsOnlyRankGetsOneBack) {
  const RankMap map({0, 1, 2}, 3);
  std::vector<int> places = {1, 2, 2};
  keep_a_rank_on_each_pe(map, {1, 1, 1}, places);
  EXPECT_EQ(places, (std::vector<int>{0, 1, 2}));
}

TEST_F(RankPlacement, ARankThatIsAloneOnItsNewPeStaysThere) {
  const RankMap map({0, 0, 1, 2}, 3);
  std::vector<int> places = {1, 2, 2, 2};  // rank 0 is the lightest
  keep_a_rank_on_each_pe(map, {1, 5, 9, 9}, places);
  EXPECT_EQ(places, (std::vector<int>{1, 0, 2, 2}));
}

TEST_F(RankPlacement, EveryPeHasARankWhateverTheStrategySays) {
  constexpr int kNumPes = 4;
  const RankMap map({0, 1, 2, 3, 3}, kNumPes);
  for (int code = 0; code < 1024; ++code) {
    std::vector<int> places;
    for (int rank = 0, rest = code; rank < 5; ++rank, rest /= kNumPes) places.push_back(rest % kNumPes);
    keep_a_rank_on_each_pe(map, {3, 1, 4, 1, 5}, places);
    std::vector<int> counts(kNumPes);
    for (const int pe : places) ++counts.at(static_cast<std::size_t>(pe));
    EXPECT_EQ(std::ranges::count(counts, 0), 0) << "places " << code;
  }
}

// One test: the strategy stays that of the process.
TEST_F(RankPlacement, TheStrategyOfTheJobDecides) {
  EXPECT_FALSE(balances_loads());
  setenv("WEFT_LB", "none", 1);
  read_balance_settings();
  EXPECT_FALSE(balances_loads());
  setenv("WEFT_LB", "greedy", 1);
  EXPECT_FALSE(balances_loads());
  read_balance_settings();
  unsetenv("WEFT_LB");  // ranks may do so
  EXPECT_TRUE(balances_loads());
  const RankMap map({0, 0, 0, 1}, 2);
  const auto places = balanced_places(map, {4, 1, 1, 2});
  ASSERT_TRUE(places.ok()) << places.status().message();
  int heavy_pe_count = 0;
  for (const int pe : places.value()) heavy_pe_count += pe == places.value()[0] ? 1 : 0;
  EXPECT_EQ(heavy_pe_count, 1);  // a PE has the load of 4, the other one 1 + 1 + 2
  // What a peer says about its load is checked.
  EXPECT_FALSE(balanced_places(map, {4, 1, std::numeric_limits<double>::quiet_NaN(), 2}).ok());
  EXPECT_FALSE(balanced_places(map, {4, 1, -1, 2}).ok());
}

}  // namespace
}  // namespace weft::mpi
