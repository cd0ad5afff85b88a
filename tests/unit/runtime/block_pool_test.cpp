#include "weft/runtime/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

namespace weft::runtime {
namespace {

TEST(BlockPool, ReusesBlocksOfAClass) {
  BlockPool pool;
  void* first = pool.allocate(100);
  pool.deallocate(first, 100);
  EXPECT_EQ(pool.allocate(128), first) << "100 and 128 bytes share a class";
  pool.deallocate(first, 128);
}

TEST(BlockPool, BlocksAreAlignedAndDistinct) {
  BlockPool pool;
  for (std::size_t size :
       {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{5000}, std::size_t{1} << 20}) {
    void* a = pool.allocate(size);
    void* b = pool.allocate(size);
    EXPECT_NE(a, b);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 64, 0u) << size;
    std::memset(a, 1, size);
    std::memset(b, 2, size);
    pool.deallocate(a, size);
    pool.deallocate(b, size);
  }
}

TEST(BlockPool, LargeBlocksCanBeHugePages) {
  BlockPool pool;
  constexpr std::size_t kSize = (std::size_t{4} << 20) - 100;
  void* block = pool.allocate(kSize);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (std::size_t{2} << 20), 0u);
  std::memset(block, 3, kSize);
  pool.deallocate(block, kSize);
}

TEST(BlockPool, KeepsOnlySoMuch) {
  BlockPool pool;
  constexpr std::size_t kTooLarge = std::size_t{300} << 20;
  pool.deallocate(pool.allocate(kTooLarge), kTooLarge);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  constexpr std::size_t kSize = std::size_t{16} << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(pool.allocate(kSize));
  for (void* block : blocks) pool.deallocate(block, kSize);
  EXPECT_EQ(pool.kept_bytes(), std::size_t{256} << 20);
}

TEST(BlockPool, SizesThatNobodyHasAreRefused) {
  BlockPool pool;
  for (int log2 : {39, 57, 58, 61, 62, 63}) {
    EXPECT_THROW(static_cast<void>(pool.allocate((std::size_t{1} << log2) + 1)), std::bad_alloc) << log2;
  }
  EXPECT_THROW(static_cast<void>(pool.allocate(~std::size_t{0})), std::bad_alloc);
}

}  // namespace
}  // namespace weft::runtime
