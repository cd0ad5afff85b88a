#include "models/chare/elements/seen_broadcasts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <set>
#include <vector>

namespace weft::chare {
namespace {

TEST(SeenBroadcasts, KnowsWhatWasAddedInAnyOrder) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    SeenBroadcasts seen;
    SeenBroadcasts other;
    std::set<std::uint64_t> numbers;
    std::set<std::uint64_t> others;
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t number = 1 + random() % 24;
      EXPECT_EQ(seen.add({3, number}), numbers.insert(number).second);
      if (random() % 2 == 0) {
        EXPECT_EQ(other.add({3, number}), others.insert(number).second);
      }
    }
    for (std::uint64_t number = 1; number < 30; ++number) {
      EXPECT_EQ(seen.contains({3, number}), numbers.contains(number));
      EXPECT_FALSE(seen.contains({2, number}));
    }
    EXPECT_TRUE(seen.includes(other));
    EXPECT_EQ(other.includes(seen), std::ranges::includes(others, numbers));
    EXPECT_TRUE(seen.is_valid(4));
    EXPECT_FALSE(seen.is_valid(3));
    const auto copy = base::unpack<SeenBroadcasts>(base::pack(seen));
    EXPECT_TRUE(copy.includes(seen) && seen.includes(copy));
  }
}

TEST(SeenBroadcasts, RefusesWhatNoPeSends) {
  SeenBroadcasts seen;
  EXPECT_TRUE(seen.is_valid(1));
  EXPECT_TRUE(seen.add({kReductionSource, 4}));
  EXPECT_TRUE(seen.is_valid(1));
  // A source, how far, and single numbers beyond.
  using Source = std::pair<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>>;
  const auto made = [](const std::vector<Source>& sources) {
    return base::unpack<SeenBroadcasts>(base::pack(sources));
  };
  EXPECT_TRUE(made({{{0, 3}, {5, 7}}}).is_valid(1));
  EXPECT_FALSE(made({{{0, 3}, {4}}}).is_valid(1));
  EXPECT_FALSE(made({{{0, 3}, {7, 7}}}).is_valid(1));
  EXPECT_FALSE(made({{{0, 3}, {7, 6}}}).is_valid(1));
  EXPECT_FALSE(made({{{0, 3}, {}}, {{0, 4}, {}}}).is_valid(1));
}

}  // namespace
}  // namespace weft::chare
