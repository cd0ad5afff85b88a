#include "machine/ucx/handles/memory_region.h"

#include <gtest/gtest.h>

#include <vector>

#include "machine/ucx/handles/context.h"

namespace weft::machine::ucx {
namespace {

constexpr std::size_t kKiB = 1024;

class MemoryRegionsTest : public ::testing::Test {
 protected:
  ~MemoryRegionsTest() override { regions_.remove_all(context_.get()); }

  RemoteMemory add(std::size_t offset_bytes, std::size_t size_bytes) {
    return regions_
        .add(context_.get(), {&bytes_[offset_bytes], size_bytes, {}, nullptr}, UCS_MEMORY_TYPE_HOST)
        .value();
  }
  void remove(const RemoteMemory& memory) { EXPECT_TRUE(regions_.remove(context_.get(), memory).ok()); }
  bool has(std::size_t offset_bytes, std::size_t size_bytes) const {
    return regions_.find(&bytes_[offset_bytes], size_bytes) != nullptr;
  }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(2048 * kKiB);
  Context context_ = Context::create({}).value();
  MemoryRegions regions_{1};
};

TEST_F(MemoryRegionsTest, OnlyWhatLiesInsideIsFound) {
  EXPECT_FALSE(has(0, 1));
  const RemoteMemory memory = add(4 * kKiB, 8 * kKiB);
  EXPECT_TRUE(has(4 * kKiB, 8 * kKiB));
  EXPECT_TRUE(has(12 * kKiB - 1, 1));
  EXPECT_FALSE(has(4 * kKiB - 1, 2));
  EXPECT_FALSE(has(12 * kKiB - 1, 2));
  EXPECT_FALSE(has(12 * kKiB, 1));
  EXPECT_FALSE(has(0, 16 * kKiB));
  remove(memory);
  EXPECT_FALSE(has(4 * kKiB, 1));
}

TEST_F(MemoryRegionsTest, AnIdFindsItsMemoryWhileThatIsRegistered) {
  const RemoteMemory first = add(0, kKiB);
  const RemoteMemory second = add(8 * kKiB, 2 * kKiB);
  const std::uint64_t first_id = MemoryRegions::id_of(first);
  const std::uint64_t second_id = MemoryRegions::id_of(second);
  for (int round = 0; round < 2; ++round) {
    ASSERT_NE(regions_.find_host(first_id), nullptr);
    EXPECT_EQ(regions_.find_host(first_id)->data, bytes_.data());
    EXPECT_EQ(regions_.find_host(first_id)->size_bytes, kKiB);
    ASSERT_NE(regions_.find_host(second_id), nullptr);
    EXPECT_EQ(regions_.find_host(second_id)->data, &bytes_[8 * kKiB]);
  }
  EXPECT_EQ(regions_.find_host(0), nullptr);
  EXPECT_EQ(regions_.find_host(second_id + 1), nullptr);
  remove(second);  // the one that was found last
  EXPECT_EQ(regions_.find_host(second_id), nullptr);
  EXPECT_NE(regions_.find_host(first_id), nullptr);
  remove(first);
  EXPECT_EQ(regions_.find_host(first_id), nullptr);
  EXPECT_EQ(regions_.find_host(0), nullptr);
}

TEST_F(MemoryRegionsTest, BehindARegionInsideALargerOne) {
  const RemoteMemory large = add(0, 1024 * kKiB);
  add(4 * kKiB, 4 * kKiB);
  add(12 * kKiB, kKiB);
  EXPECT_TRUE(has(16 * kKiB, 64)) << "behind the small ones";
  EXPECT_TRUE(has(4 * kKiB, 8 * kKiB)) << "from inside a small one";
  EXPECT_TRUE(has(1024 * kKiB - 1, 1));
  EXPECT_FALSE(has(1024 * kKiB, 1));
  EXPECT_FALSE(has(16 * kKiB, 1024 * kKiB));
  remove(large);
  EXPECT_FALSE(has(16 * kKiB, 64));
  EXPECT_TRUE(has(12 * kKiB, 64));
}

TEST_F(MemoryRegionsTest, OfTheRegionsWithOneAddressTheLargestCounts) {
  add(0, 64 * kKiB);
  const RemoteMemory small = add(0, 4 * kKiB);
  EXPECT_TRUE(has(0, 64 * kKiB));
  EXPECT_TRUE(has(8 * kKiB, 64));
  remove(small);
  EXPECT_TRUE(has(0, 64));
}

}  // namespace
}  // namespace weft::machine::ucx
