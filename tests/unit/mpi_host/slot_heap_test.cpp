#include "slots/slot_heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "program/refusal.h"

namespace weft::mpi_host {
namespace {

constexpr std::size_t kRoom = std::size_t{256} << 20;

class SlotHeapTest : public ::testing::Test {
 protected:
  SlotHeapTest()
      : begin_(static_cast<char*>(
            mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        heap_(SlotHeap::make(begin_, begin_ + kRoom)) {}
  ~SlotHeapTest() override { munmap(begin_, kRoom); }

  bool is_inside(const void* block) const {
    return static_cast<const char*>(block) > begin_ && static_cast<const char*>(block) < begin_ + kRoom;
  }

  char* const begin_;
  SlotHeap& heap_;
};

bool has_everywhere(const void* block, std::size_t size_bytes, unsigned char value) {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < size_bytes; ++i) {
    if (bytes[i] != value) return false;
  }
  return true;
}

bool is_aligned(const void* block, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(block) % alignment == 0;
}

TEST_F(SlotHeapTest, BlocksLieInTheSlotAndAreAligned) {
  for (const std::size_t size : {0U, 1U, 15U, 16U, 17U, 100U, 5000U, 300000U}) {
    void* const block = heap_.allocate(size);
    ASSERT_TRUE(is_inside(block)) << size;
    EXPECT_TRUE(is_aligned(block, SlotHeap::kAlignment)) << size;
    EXPECT_GE(heap_.usable_bytes(block), size);
  }
  for (const std::size_t alignment : {32U, 64U, 4096U, 1U << 20}) {
    void* const block = heap_.allocate(10, alignment);
    ASSERT_TRUE(is_inside(block)) << alignment;
    EXPECT_TRUE(is_aligned(block, alignment));
  }
  EXPECT_TRUE(heap_.is_sound());
}

TEST_F(SlotHeapTest, GrowsUntilTheSlotIsFull) {
  EXPECT_EQ(heap_.allocate(kRoom), nullptr);
  EXPECT_EQ(heap_.allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(heap_.allocate(16, SIZE_MAX / 2 + 1), nullptr);
  EXPECT_LT(heap_.accessible_bytes(), std::size_t{1} << 20);
  void* const large = heap_.allocate(kRoom / 2);
  ASSERT_NE(large, nullptr);
  std::memset(large, 1, kRoom / 2);
  EXPECT_EQ(heap_.allocate(kRoom / 2), nullptr);
  heap_.free(large);
  EXPECT_NE(heap_.allocate(kRoom / 2), nullptr);
  EXPECT_TRUE(heap_.is_sound());
}

TEST_F(SlotHeapTest, ASlotThatIsTooSmallIsRefused) {
  EXPECT_THROW(SlotHeap::make(begin_ + 8192, begin_ + 8192), Refusal);
  EXPECT_THROW(SlotHeap::make(begin_ + 8192, begin_ + 16384), Refusal);
}

TEST_F(SlotHeapTest, ZeroedBlocksAreZeroWhateverWasThere) {
  for (const std::size_t size : {std::size_t{100}, std::size_t{5} << 20}) {
    void* const before = heap_.allocate(size);
    std::memset(before, 0xff, size);
    heap_.free(before);
    void* const block = heap_.allocate_zeroed(size);
    EXPECT_EQ(block, before);
    EXPECT_TRUE(has_everywhere(block, size, 0));
  }
}

TEST_F(SlotHeapTest, APageOfAFreedLargeBlockTakesNoMemory) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  auto* const block = static_cast<char*>(heap_.allocate(kSize));
  std::memset(block, 1, kSize);
  char* const page = begin_ + (static_cast<std::size_t>(block - begin_) + kSize / 2) / 4096 * 4096;
  unsigned char is_resident = 0;
  ASSERT_EQ(mincore(page, 1, &is_resident), 0);
  EXPECT_EQ(is_resident & 1, 1);
  heap_.free(block);
  ASSERT_EQ(mincore(page, 1, &is_resident), 0);
  EXPECT_EQ(is_resident & 1, 0);
}

TEST_F(SlotHeapTest, ReallocationKeepsTheBytes) {
  auto* block = static_cast<char*>(heap_.allocate(100));
  std::memset(block, 7, 100);
  (void)heap_.allocate(100);  // in the way
  block = static_cast<char*>(heap_.reallocate(block, 50000));
  EXPECT_TRUE(has_everywhere(block, 100, 7));
  std::memset(block, 8, 50000);
  char* const same = static_cast<char*>(heap_.reallocate(block, 90000));  // there is room behind it
  EXPECT_EQ(same, block);
  char* const smaller = static_cast<char*>(heap_.reallocate(same, 50));
  EXPECT_TRUE(has_everywhere(smaller, 50, 8));
  EXPECT_EQ(heap_.reallocate(smaller, kRoom), nullptr);
  EXPECT_TRUE(has_everywhere(smaller, 50, 8));
  EXPECT_TRUE(heap_.is_sound());
}

TEST_F(SlotHeapTest, RandomBlocksDoNotOverlap) {
  const unsigned seed = std::random_device()();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  struct Block {
    void* memory;
    std::size_t size;
    unsigned char value;
  };
  std::vector<Block> blocks;
  const auto random_size = [&] { return std::size_t{1} << random() % 16 | random() % 64; };
  for (int i = 0; i < 20000; ++i) {
    const auto value = static_cast<unsigned char>(random() % 256);
    if (blocks.empty() || random() % 2 == 0) {
      const std::size_t size = random_size();
      void* const memory = heap_.allocate(size, std::size_t{1} << random() % 9);
      ASSERT_NE(memory, nullptr);
      std::memset(memory, value, size);
      blocks.push_back({memory, size, value});
      continue;
    }
    Block& chosen = blocks[random() % blocks.size()];
    const std::size_t kept = std::min<std::size_t>(chosen.size, 1000);
    ASSERT_TRUE(has_everywhere(chosen.memory, kept, chosen.value));
    if (random() % 3 == 0) {
      const std::size_t size = random_size();
      chosen.memory = heap_.reallocate(chosen.memory, size);
      ASSERT_TRUE(has_everywhere(chosen.memory, std::min(kept, size), chosen.value));
      chosen.size = size;
      std::memset(chosen.memory, chosen.value, size);
    } else {
      heap_.free(chosen.memory);
      chosen = blocks.back();
      blocks.pop_back();
    }
  }
  EXPECT_TRUE(heap_.is_sound());
}

}  // namespace
}  // namespace weft::mpi_host
