// Blocks on boards of two PEs in one process, which map each other's files as processes do.
#include "collective/board.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "weft/base/error.h"

namespace weft::collective {
namespace {

constexpr std::size_t kBlockBytes = 5000;

std::vector<std::byte> block_of(int number, std::size_t size_bytes = kBlockBytes) {
  return std::vector<std::byte>(size_bytes, static_cast<std::byte>(number));
}

class BoardsTest : public ::testing::Test {
 protected:
  // PE 1 reads what PE 0 has posted.
  void expect_block(const BoardReference& reference, const std::vector<std::byte>& expected) {
    const std::optional<Boards::Block> block = reader_.read(0, reference);
    ASSERT_TRUE(block.has_value());
    ASSERT_EQ(block->bytes.size(), expected.size());
    EXPECT_EQ(std::memcmp(block->bytes.data(), expected.data(), expected.size()), 0);
    block->release();
  }

  Boards owner_{2};
  Boards reader_{2};
};

TEST_F(BoardsTest, AReaderFindsTheBlock) {
  const std::optional<BoardReference> posted = owner_.post(block_of(1));
  ASSERT_TRUE(posted.has_value());
  EXPECT_EQ(owner_.num_posted(), 1U);
  expect_block(*posted, block_of(1));
  EXPECT_EQ(owner_.num_posted(), 0U);
}

TEST_F(BoardsTest, TheOwnerReadsItsOwnBlocks) {
  const std::optional<BoardReference> posted = owner_.post(block_of(1));
  ASSERT_TRUE(posted.has_value());
  const std::optional<Boards::Block> block = owner_.read(0, *posted);
  ASSERT_TRUE(block.has_value());
  EXPECT_TRUE(std::ranges::equal(block->bytes, block_of(1)));
}

TEST_F(BoardsTest, ABlockIsFreeWhenAllHaveReadIt) {
  const std::optional<BoardReference> posted = owner_.post(block_of(1));
  ASSERT_TRUE(posted.has_value());
  owner_.add_reader(*posted);
  expect_block(*posted, block_of(1));
  EXPECT_EQ(owner_.num_posted(), 1U);
  expect_block(*posted, block_of(1));
  EXPECT_EQ(owner_.num_posted(), 0U);
}

TEST_F(BoardsTest, AFullBoardTakesNothingUntilTheOldestBlockIsRead) {
  std::vector<BoardReference> posted;
  while (const std::optional<BoardReference> one =
             owner_.post(block_of(static_cast<int>(posted.size()), Boards::kBoardBytes / 8)))
    posted.push_back(*one);
  EXPECT_EQ(posted.size(), 7U);  // a page is the board's own
  expect_block(posted[1], block_of(1, Boards::kBoardBytes / 8));
  EXPECT_FALSE(owner_.post(block_of(9, Boards::kBoardBytes / 8)).has_value()) << "the oldest is not read";
  expect_block(posted[0], block_of(0, Boards::kBoardBytes / 8));
  const std::optional<BoardReference> next = owner_.post(block_of(9, Boards::kBoardBytes / 8));
  ASSERT_TRUE(next.has_value());
  for (std::size_t i = 2; i < posted.size(); ++i)
    expect_block(posted[i], block_of(static_cast<int>(i), Boards::kBoardBytes / 8));
  expect_block(*next, block_of(9, Boards::kBoardBytes / 8));
}

TEST_F(BoardsTest, WhatALostReaderHasNotReadIsNotInTheWay) {
  constexpr std::size_t kHalfBytes = Boards::kBoardBytes / 2;
  const std::optional<BoardReference> before = owner_.post(block_of(1, kHalfBytes));
  ASSERT_TRUE(before.has_value());
  owner_.add_reader(*before);  // PE 1, and one that is lost
  EXPECT_FALSE(owner_.post(block_of(2, kHalfBytes)).has_value());
  owner_.lose(0);
  EXPECT_FALSE(owner_.posts_for(0));
  EXPECT_TRUE(owner_.posts_for(1));
  const std::optional<BoardReference> after = owner_.post(block_of(2, kHalfBytes));
  ASSERT_TRUE(after.has_value());
  expect_block(*after, block_of(2, kHalfBytes));
  expect_block(*before, block_of(1, kHalfBytes));
  EXPECT_EQ(owner_.num_posted(), 0U);
  const Boards::Block refused = owner_.refused_by(1, *before);
  EXPECT_TRUE(std::ranges::equal(refused.bytes, block_of(1, kHalfBytes)));
}

TEST_F(BoardsTest, ABlockThatIsLargerThanTheBoardIsNotPosted) {
  EXPECT_FALSE(owner_.post(block_of(1, Boards::kBoardBytes)).has_value());
  EXPECT_TRUE(owner_.post(block_of(1)).has_value());
}

TEST_F(BoardsTest, RandomBlocksStayAsTheyAreUntilTheyAreRead) {
  const unsigned seed = 20261129;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::deque<std::pair<BoardReference, std::vector<std::byte>>> unread;
  int num_refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::byte> block = block_of(i, random() % 200'000);
    if (const std::optional<BoardReference> posted = owner_.post(block)) {
      unread.emplace_back(*posted, std::move(block));
    } else {
      ++num_refused;
    }
    while (!unread.empty() && random() % 50 < 24) {
      const std::size_t which = random() % std::min<std::size_t>(unread.size(), 3);
      expect_block(unread[which].first, unread[which].second);
      unread.erase(unread.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  EXPECT_GT(num_refused, 0);
  for (const auto& [reference, block] : unread) expect_block(reference, block);
  EXPECT_EQ(owner_.num_posted(), 0U);
}

TEST_F(BoardsTest, AReaderThatCannotOpenFilesGetsNoMoreReferences) {
  const std::optional<BoardReference> posted = owner_.post(block_of(1));
  ASSERT_TRUE(posted.has_value());
  reader_.open_none();
  EXPECT_FALSE(reader_.read(0, *posted).has_value());
  const Boards::Block block = owner_.refused_by(1, *posted);
  EXPECT_TRUE(std::ranges::equal(block.bytes, block_of(1)));
  block.release();
  EXPECT_FALSE(owner_.posts_for(1));
  EXPECT_TRUE(owner_.posts_for(0));
  EXPECT_THROW(owner_.refused_by(1, *posted), base::Error) << "it has been released";
  EXPECT_EQ(owner_.num_posted(), 0U);
}

TEST_F(BoardsTest, ABlockOfWhichNoReaderWasToldIsFree) {
  const std::optional<BoardReference> posted = owner_.post(block_of(1));
  ASSERT_TRUE(posted.has_value());
  owner_.take_back(*posted);
  EXPECT_EQ(owner_.num_posted(), 0U);
}

TEST_F(BoardsTest, NothingIsPostedForOtherHosts) {
  owner_.post_none_for(1);
  EXPECT_FALSE(owner_.posts_for(1));
  EXPECT_TRUE(owner_.posts_for(0));
}

TEST_F(BoardsTest, AFileThatIsNotThereCannotBeRead) {
  BoardReference unknown = *owner_.post(block_of(1));
  unknown.board.nonce ^= 1;
  EXPECT_FALSE(reader_.read(0, unknown).has_value());
}

TEST_F(BoardsTest, ReferencesThatCannotBeAreRefused) {
  const BoardReference good = *owner_.post(block_of(1));
  const auto with = [&](std::uint64_t offset_bytes, std::uint64_t size_bytes) {
    BoardReference bad = good;
    bad.offset_bytes = offset_bytes;
    bad.size_bytes = size_bytes;
    return bad;
  };
  const std::uint64_t huge = ~std::uint64_t{0};
  for (const BoardReference& bad : {with(0, 8), with(good.offset_bytes + 1, 8), with(Boards::kBoardBytes, 0),
                                    with(huge - 63, 8), with(good.offset_bytes, Boards::kBoardBytes),
                                    with(good.offset_bytes, huge), with(Boards::kBoardBytes - 64, 1)})
    EXPECT_FALSE(Boards::is_inside(bad)) << bad.offset_bytes << ", " << bad.size_bytes;
  EXPECT_TRUE(Boards::is_inside(good));
  EXPECT_THROW(owner_.refused_by(1, with(good.offset_bytes + 64, 8)), base::Error) << "inside of a block";
  EXPECT_THROW(owner_.refused_by(1, with(good.offset_bytes, 2 * kBlockBytes)), base::Error);
  EXPECT_THROW(reader_.refused_by(0, good), base::Error) << "it has no board";
}

}  // namespace
}  // namespace weft::collective
