#include "models/mpi/p2p/rank_map.h"

#include <gtest/gtest.h>

#include <vector>

#include "weft/base/error.h"

namespace weft::mpi {
namespace {

TEST(RankMap, HasOneRankForEachPeByItself) {
  const RankMap map(3);
  EXPECT_EQ(map.num_ranks(), 3);
  EXPECT_EQ(map.pe_of(2), 2);
  EXPECT_FALSE(map.shares_pes());
  EXPECT_EQ(map.ranks_on(1), std::vector<int>{1});
}

TEST(RankMap, NamesThePeOfEachRank) {
  const RankMap map({1, 0, 1, 1}, 2);
  EXPECT_EQ(map.num_ranks(), 4);
  EXPECT_TRUE(map.shares_pes());
  EXPECT_EQ(map.ranks_on(0), std::vector<int>{1});
  EXPECT_EQ(map.ranks_on(1), (std::vector<int>{0, 2, 3}));
  EXPECT_FALSE(map.has(-1));
  EXPECT_FALSE(map.has(4));
}

TEST(RankMap, RefusesPesThatDoNotExistOrHaveNoRank) {
  EXPECT_THROW(RankMap({0, 2}, 2), base::Error);
  EXPECT_THROW(RankMap({0, -1}, 2), base::Error);
  EXPECT_THROW(RankMap({0, 0}, 2), base::Error);
  EXPECT_THROW(RankMap({}, 1), base::Error);
}

TEST(RankMap, DiffersInItsFingerprint) {
  EXPECT_EQ(RankMap({0, 1}, 2).fingerprint(), RankMap(2).fingerprint());
  EXPECT_NE(RankMap({1, 0}, 2).fingerprint(), RankMap(2).fingerprint());
}

}  // namespace
}  // namespace weft::mpi
