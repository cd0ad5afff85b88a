#include "weft/runtime/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

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

TEST(BlockPool, KeepsOnlySoMuch) {
  BlockPool pool;
  constexpr std::size_t kSize = std::size_t{100} << 20;  // more than a class keeps
  void* block = pool.allocate(kSize);
  pool.deallocate(block, kSize);  // freed, not kept: the sanitizers would tell a leak or a double free
}

}  // namespace
}  // namespace weft::runtime
