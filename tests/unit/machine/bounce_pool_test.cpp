#include "machine/staging/bounce_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "memory/kinds/cuda/cuda_options.h"
#include "tests/unit/memory/fake_cuda.h"

namespace weft::machine {
namespace {

constexpr memory::Place kCuda{memory::Kind::kCuda, 1};
constexpr memory::Place kEmulated{memory::Kind::kEmulated, 0};

class BouncePoolTest : public ::testing::Test {
 protected:
  BouncePoolTest() : memory((fake_cuda_reset(), options())), pool(memory, 4 * BouncePool::kMaxKeptBytes) {}

  static memory::MemoryOptions options() {
    memory::MemoryOptions options;
    options.of<memory::CudaOptions>().driver = FAKE_CUDA;
    return options;
  }

  memory::Memory memory;
  BouncePool pool;
};

TEST_F(BouncePoolTest, GivesAtLeastWhatWasAskedFor) {
  for (std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{4097}, std::size_t{1'000'000},
                           BouncePool::kMaxKeptBytes, BouncePool::kMaxKeptBytes + 1}) {
    const Bounce bounce = pool.acquire(size, kCuda);
    ASSERT_NE(bounce.data(), nullptr);
    EXPECT_GE(bounce.capacity_bytes(), size);
    std::memset(bounce.data(), 1, bounce.capacity_bytes());
  }
}

TEST_F(BouncePoolTest, DevicesCopyToItWithoutTheCpu) {
  const Bounce bounce = pool.acquire(10'000, kCuda);
  EXPECT_TRUE(
      memory.backend(memory::Kind::kCuda)->host_copy_is_async(bounce.data(), bounce.capacity_bytes()));
  EXPECT_EQ(fake_cuda()->calls["cuMemHostAlloc"], 1);
}

TEST_F(BouncePoolTest, UsesABufferAgain) {
  std::byte* first = nullptr;
  {
    const Bounce bounce = pool.acquire(10'000, kCuda);
    first = bounce.data();
    EXPECT_EQ(pool.free_bytes(), 0u);
  }
  EXPECT_EQ(pool.free_bytes(), 16'384u);
  EXPECT_EQ(pool.acquire(16'384, kCuda).data(), first);
  EXPECT_NE(pool.acquire(16'384, kEmulated).data(), first) << "another kind's";
  EXPECT_EQ(fake_cuda()->calls["cuMemHostAlloc"], 1);
}

TEST_F(BouncePoolTest, TwoOnLoanAreDifferent) {
  const Bounce one = pool.acquire(100, kEmulated);
  const Bounce two = pool.acquire(100, kEmulated);
  EXPECT_NE(one.data(), two.data());
}

TEST_F(BouncePoolTest, KeepsNeitherHugeBuffersNorTooMany) {
  {
    const Bounce huge = pool.acquire(BouncePool::kMaxKeptBytes + 1, kCuda);
  }
  EXPECT_EQ(pool.free_bytes(), 0u);
  {
    std::vector<Bounce> many;
    for (int i = 0; i < 6; ++i) many.push_back(pool.acquire(BouncePool::kMaxKeptBytes, kCuda));
    for (const Bounce& bounce : many) EXPECT_NE(bounce.data(), nullptr);
  }
  EXPECT_EQ(pool.free_bytes(), 4 * BouncePool::kMaxKeptBytes);
  EXPECT_EQ(fake_cuda()->calls["cuMemHostAlloc"], 4);
}

TEST_F(BouncePoolTest, KeepsAShareOfWhatTheHostHas) {
  const BouncePool of_this_host(memory);
  const std::size_t share = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
                            static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / 100;
  EXPECT_GE(of_this_host.max_total_kept_bytes(), 4 * BouncePool::kMaxKeptBytes);
  EXPECT_LE(of_this_host.max_total_kept_bytes(), std::max(share, 4 * BouncePool::kMaxKeptBytes));
}

TEST_F(BouncePoolTest, WhatIsFreeMakesRoomForOtherSizes) {
  {
    std::vector<Bounce> many;
    for (int i = 0; i < 4; ++i) many.push_back(pool.acquire(BouncePool::kMaxKeptBytes, kCuda));
  }
  const Bounce small = pool.acquire(100, kCuda);
  EXPECT_EQ(pool.free_bytes(), 0u);
  EXPECT_TRUE(memory.backend(memory::Kind::kCuda)->host_copy_is_async(small.data(), 100));
}

TEST_F(BouncePoolTest, OrdinaryMemoryServesWhereNoneCanBeLocked) {
  fake_cuda()->fail_next["cuMemHostAlloc"] = 2;
  const Bounce bounce = pool.acquire(100, kCuda);
  ASSERT_NE(bounce.data(), nullptr);
  EXPECT_FALSE(memory.backend(memory::Kind::kCuda)->host_copy_is_async(bounce.data(), 100));
}

TEST_F(BouncePoolTest, AMovedBounceGoesBackOnce) {
  {
    Bounce one = pool.acquire(100, kCuda);
    Bounce two = std::move(one);
    Bounce three;
    three = std::move(two);
    EXPECT_NE(three.data(), nullptr);
  }
  EXPECT_EQ(pool.free_bytes(), 4096u);
}

}  // namespace
}  // namespace weft::machine
