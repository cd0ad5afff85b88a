#include "weft/runtime/attachment.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::runtime {
namespace {

struct AttachmentTest : ::testing::Test {
  Attachment made(std::size_t size_bytes) {
    auto release = [](void* owner, const memory::Buffer& buffer) {
      static_cast<AttachmentTest*>(owner)->released.push_back(buffer);
    };
    return Attachment(memory::Buffer{this, size_bytes, {}, nullptr}, release, this);
  }
  std::vector<memory::Buffer> released;
};

TEST_F(AttachmentTest, IsGivenBackOnceByTheLastOfItsHolders) {
  for (int first : {0, 1, 2}) {
    released.clear();
    std::vector<Attachment> holders;
    holders.push_back(made(8));
    EXPECT_FALSE(holders[0].is_shared());
    holders.push_back(holders[0].share());
    holders.push_back(holders[1].share());
    for (const Attachment& one : holders) {
      EXPECT_TRUE(one.is_shared());
      EXPECT_EQ(one.buffer().data, this);
      EXPECT_EQ(one.buffer().size_bytes, 8u);
    }
    holders.erase(holders.begin() + first);
    holders.erase(holders.begin());
    EXPECT_TRUE(released.empty());
    EXPECT_TRUE(holders[0]);
    EXPECT_FALSE(holders[0].is_shared()) << "the others are gone";
    holders.clear();
    EXPECT_EQ(released.size(), 1u);
  }
}

TEST_F(AttachmentTest, IsGivenBackAfterWhatAHolderHasQueuedOnAStream) {
  int stream = 0;
  Attachment one = made(8);
  {
    Attachment other = one.share();
    other.use_on(&stream);
  }
  one = Attachment();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].stream, &stream);
}

TEST_F(AttachmentTest, IsGivenBackWholeWhateverItsHoldersMakeOfIt) {
  Attachment one = made(8);
  Attachment other = one.share();
  other.shorten(3);
  EXPECT_EQ(one.buffer().size_bytes, 8u);
  EXPECT_EQ(other.share().buffer().size_bytes, 3u);
  one = Attachment();
  other = Attachment();
  ASSERT_EQ(released.size(), 1u);
  EXPECT_EQ(released[0].size_bytes, 8u);
}

TEST_F(AttachmentTest, ThatWasMovedElsewhereSharesNothing) {
  Attachment none;
  Attachment other = none.share();
  EXPECT_FALSE(none);
  EXPECT_FALSE(other);
  EXPECT_FALSE(none.is_shared());
}

}  // namespace
}  // namespace weft::runtime
