#include "checkpoint/protected_state.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/value_or_throw.h"
#include "checkpoint/element_file.h"

namespace weft::checkpoint_files {
namespace {

using base::StatusCode;

BlockPtr block_of(std::size_t size_bytes) { return std::make_shared<Block>(size_bytes); }

TEST(ProtectedState, TheOneBeforeStaysUntilTheNextIsCommitted) {
  ProtectedState state;
  EXPECT_EQ(state.committed(), 0u);
  state.put({1, 0}, block_of(1));
  state.commit(1, {});
  state.put({2, 0}, block_of(2));
  state.put({2, 3}, block_of(3));
  EXPECT_EQ(state.committed(), 1u);
  EXPECT_EQ(state.find({1, 0})->size(), 1u);
  state.drop(2);
  EXPECT_EQ(state.block_ids(), (std::vector<ProtectedState::BlockId>{{1, 0}}));
  state.put({2, 0}, block_of(2));
  Manifest manifest;
  manifest.checkpoint = 2;
  state.commit(2, manifest);
  EXPECT_EQ(state.committed(), 2u);
  EXPECT_EQ(state.manifest().checkpoint, 2u);
  EXPECT_EQ(state.find({1, 0}), nullptr);
  EXPECT_EQ(state.find({2, 0})->size(), 2u);
}

// Blocks of a state that another PE has begun to protect are dropped by its own word.
TEST(ProtectedState, ACommitDropsTheOneBeforeAndThoseOfEarlierIncarnations) {
  ProtectedState state;
  const auto number = [](std::uint64_t incarnation, std::uint64_t count) {
    return (incarnation << ProtectedState::kIncarnationShift) + count;
  };
  state.put({number(0, 1), 0}, block_of(1));
  state.commit(number(0, 1), {});
  state.put({number(0, 2), 0}, block_of(2));  // was not complete when a PE was lost
  state.incarnation = 1;
  state.put({number(1, 1), 0}, block_of(3));
  state.put({number(1, 2), 0}, block_of(4));
  state.commit(number(1, 1), {});
  EXPECT_EQ(state.block_ids(), (std::vector<ProtectedState::BlockId>{{number(1, 1), 0}, {number(1, 2), 0}}));
}

TEST(Block, GrowsAndGivesMuchRoomBack) {
  Block block;
  EXPECT_EQ(block.size(), 0u);
  block.append("abc", 3);
  block.append("defgh", 5);
  block.append(nullptr, 0);
  const std::byte* const before = block.data();
  block.release_room();
  EXPECT_EQ(block.data(), before);  // too little to move
  block.reserve(100);
  block.append("ij", 2);
  const std::byte* const roomy = block.data();
  block.release_room();
  EXPECT_NE(block.data(), roomy);
  EXPECT_EQ(std::memcmp(block.data(), "abcdefghij", 10), 0);
  EXPECT_EQ(block.size(), 10u);
  EXPECT_EQ(Block(7).size(), 7u);
}

TEST(ProtectedState, ABlockBeginsWithTheRoomOfTheOneBefore) {
  ProtectedState state;
  EXPECT_EQ(state.begin_block(0)->data(), nullptr);
  state.put({1, 0}, block_of(100));
  state.commit(1, {});
  const std::shared_ptr<Block> block = state.begin_block(0);
  const std::byte* const begin = block->data();
  block->append(std::array<std::byte, 105>{}.data(), 105);
  EXPECT_EQ(block->data(), begin);
}

TEST(ProtectedState, ABlockIsAnElementFile) {
  const std::array<std::byte, 3> bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  const auto block = std::make_shared<Block>();
  auto writer = base::value_or_throw(ElementFileWriter::begin(std::make_unique<BlockSink>(*block), 9, 2));
  ASSERT_TRUE(writer.add_element(0, 4, 1, bytes).ok());
  const FileSummary summary = base::value_or_throw(writer.finish());
  EXPECT_EQ(summary.file_bytes(), block->size());
  const std::vector<std::uint64_t> sizes{5};
  const auto file = base::value_or_throw(
      ElementFileReader::read(std::make_unique<BlockSource>(block, "the block"), 9, 2, summary, sizes));
  EXPECT_TRUE(file.verify().ok());
  ASSERT_EQ(file.elements().size(), 1u);
  std::array<std::byte, 3> read{};
  ASSERT_TRUE(file.read_state(file.elements().front(), read.data()).ok());
  EXPECT_EQ(read, bytes);

  const auto shorter = std::make_shared<Block>();
  shorter->append(block->data(), block->size() - 1);
  EXPECT_EQ(ElementFileReader::read(std::make_unique<BlockSource>(shorter, "the block"), 9, 2, summary, sizes)
                .status()
                .code(),
            StatusCode::kCorrupt);
  EXPECT_EQ(BlockSource(block, "the block").read(block->size(), read.data(), 1).code(), StatusCode::kCorrupt);
}

}  // namespace
}  // namespace weft::checkpoint_files
