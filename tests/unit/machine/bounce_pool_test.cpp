#include "machine/bounce_pool.h"

#include <gtest/gtest.h>

namespace weft::machine {
namespace {

TEST(BouncePool, GivesAtLeastWhatWasAskedFor) {
  BouncePool pool;
  for (std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{1'000'000}}) {
    const Bounce bounce = pool.acquire(size);
    ASSERT_NE(bounce.data(), nullptr);
    EXPECT_GE(bounce.capacity_bytes(), size);
  }
}

TEST(BouncePool, UsesABufferAgain) {
  BouncePool pool;
  std::byte* first = nullptr;
  {
    const Bounce bounce = pool.acquire(10'000);
    first = bounce.data();
    EXPECT_EQ(pool.kept_bytes(), 0u);
  }
  EXPECT_EQ(pool.kept_bytes(), 16'384u);
  EXPECT_EQ(pool.acquire(16'384).data(), first);
}

TEST(BouncePool, TwoOnLoanAreDifferent) {
  BouncePool pool;
  const Bounce one = pool.acquire(100);
  const Bounce two = pool.acquire(100);
  EXPECT_NE(one.data(), two.data());
}

TEST(BouncePool, KeepsNeitherHugeBuffersNorTooMany) {
  BouncePool pool;
  {
    const Bounce huge = pool.acquire(BouncePool::kMaxKeptBytes + 1);
  }
  EXPECT_EQ(pool.kept_bytes(), 0u);
  {
    std::vector<Bounce> many;
    for (int i = 0; i < 6; ++i) many.push_back(pool.acquire(BouncePool::kMaxKeptBytes));
  }
  EXPECT_EQ(pool.kept_bytes(), BouncePool::kMaxTotalKeptBytes);
}

TEST(BouncePool, AMovedBounceGoesBackOnce) {
  BouncePool pool;
  {
    Bounce one = pool.acquire(100);
    Bounce two = std::move(one);
    Bounce three;
    three = std::move(two);
    EXPECT_NE(three.data(), nullptr);
  }
  EXPECT_EQ(pool.kept_bytes(), 4096u);
}

}  // namespace
}  // namespace weft::machine
