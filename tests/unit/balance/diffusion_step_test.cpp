#include "balance/strategies/diffusion_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace weft::balance {
namespace {

constexpr double kTolerance = 0.02;

TEST(DiffusionStep, PartnersAgreeAndTheirPairsConnectAllPes) {
  for (const int num_pes : {1, 2, 3, 4, 5, 6, 7, 8, 31, 32, 33, 100}) {
    std::set<int> reached{0};
    for (int sweep = 0; sweep < num_pes; ++sweep) {
      for (int round = 0; round < rounds_of_sweep(num_pes); ++round) {
        for (int pe = 0; pe < num_pes; ++pe) {
          const auto partner = partner_in_round(pe, round, num_pes);
          if (!partner) continue;
          ASSERT_NE(*partner, pe);
          ASSERT_GE(*partner, 0);
          ASSERT_LT(*partner, num_pes);
          ASSERT_EQ(partner_in_round(*partner, round, num_pes), pe) << num_pes << " PEs, round " << round;
          if (reached.contains(pe)) reached.insert(*partner);
        }
      }
      if (sweep == 1) break;
    }
    EXPECT_EQ(static_cast<int>(reached.size()), num_pes) << "two sweeps do not reach all PEs";
  }
}

TEST(DiffusionStep, TheLoadToGiveMakesBothTimesEqual) {
  EXPECT_DOUBLE_EQ(load_to_give({0, 10, 1}, {1, 4, 1}, 0), 3);
  // 10 - 4 / 1 == 4 + 4 / 2
  EXPECT_DOUBLE_EQ(load_to_give({0, 10, 1}, {1, 4, 2}, 0), 4);
  EXPECT_EQ(load_to_give({0, 4, 1}, {1, 10, 1}, 0), 0);
  EXPECT_EQ(load_to_give({0, 4, 1}, {1, 4, 1}, 0), 0);
  // 10.1 and 10 are within 2 % of 10.05.
  EXPECT_EQ(load_to_give({0, 10.1, 1}, {1, 10, 1}, kTolerance), 0);
}

OwnObject object(std::uint64_t number, double load_s, std::vector<OwnEdge> edges = {}) {
  return {number, load_s, true, std::move(edges)};
}

TEST(DiffusionStep, ObjectsThatTalkToTheNeighbourGoFirst) {
  const std::vector<OwnObject> objects = {object(0, 1), object(1, 1, {{7, 1, 10}}),
                                          object(2, 1, {{8, 1, 100}}), object(3, 1, {{9, 2, 1000}})};
  EXPECT_EQ(choose_objects({0, 4, 1}, objects, {1, 2, 1}, kTolerance), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(choose_objects({0, 4, 1}, objects, {1, 0, 1}, kTolerance), (std::vector<std::uint64_t>{2, 1}));
}

// A line of six objects, of which the last one talks to the neighbour: half of the line goes, from that end.
TEST(DiffusionStep, WhatGoesIsOnePiece) {
  std::vector<OwnObject> objects;
  for (std::uint32_t i = 0; i < 6; ++i) {
    objects.push_back(object(i, 1));
    if (i > 0) objects[i].edges.push_back({i - 1, 0, 10});
    if (i < 5) objects[i].edges.push_back({i + 1, 0, 10});
  }
  objects[5].edges.push_back({100, 1, 1});
  EXPECT_EQ(choose_objects({0, 6, 1}, objects, {1, 0, 1}, kTolerance), (std::vector<std::uint64_t>{5, 4, 3}));
}

TEST(DiffusionStep, AnObjectThatTalksToItselfIsNotTiedToItsPe) {
  const std::vector<OwnObject> objects = {object(0, 1, {{0, 0, 1000}}), object(1, 1, {{2, 0, 1}}),
                                          object(2, 1, {{1, 0, 1}})};
  EXPECT_EQ(choose_objects({0, 3, 1}, objects, {1, 1, 1}, kTolerance), (std::vector<std::uint64_t>{0}));
}

TEST(DiffusionStep, ObjectsThatCannotMoveOrHaveNoLoadStay) {
  std::vector<OwnObject> objects = {object(0, 1), object(1, 0), object(2, 1)};
  objects[0].can_move = false;
  EXPECT_EQ(choose_objects({0, 2, 1}, objects, {1, 0, 1}, kTolerance), (std::vector<std::uint64_t>{2}));
}

TEST(DiffusionStep, OneObjectMayBeLargerThanTheLoadToGiveIfItHelps) {
  // 3 to give. 5 leaves 1 more than before on neither: 10 - 5 = 5 and 4 + 5 = 9, below 10. 6 would exchange the times.
  EXPECT_EQ(choose_objects({0, 10, 1}, {object(0, 5), object(1, 5.5)}, {1, 4, 1}, kTolerance),
            (std::vector<std::uint64_t>{0}));
  EXPECT_TRUE(choose_objects({0, 10, 1}, {object(0, 6)}, {1, 4, 1}, kTolerance).empty());
}

}  // namespace
}  // namespace weft::balance
