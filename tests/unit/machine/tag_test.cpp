#include "machine/tag.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::machine {
namespace {

TEST(Tag, DeviceFieldsLieWhereTheDesignPutsThem) {
  EXPECT_EQ(device_tag(0, 0), Tag{1} << 60);
  EXPECT_EQ(device_tag(1, 0), (Tag{1} << 60) | (Tag{1} << 28));
  EXPECT_EQ(device_tag(0, 1), (Tag{1} << 60) | 1);
  EXPECT_EQ(device_tag(0xffff'ffffu, kDeviceCounterMask), (Tag{1} << 60) | ((Tag{1} << 60) - 1));
}

TEST(Tag, ChannelFieldsLieWhereTheDesignPutsThem) {
  EXPECT_EQ(channel_tag(0, 0), Tag{2} << 60);
  EXPECT_EQ(channel_tag(1, 0), (Tag{2} << 60) | (Tag{1} << 32));
  EXPECT_EQ(channel_tag(0, 1), (Tag{2} << 60) | 1);
  EXPECT_EQ(channel_tag(kMaxChannelId, 0xffff'ffffu), (Tag{2} << 60) | ((Tag{1} << 60) - 1));
}

TEST(Tag, CountersWrapInsideTheirField) {
  EXPECT_EQ(device_tag(7, kDeviceCounterMask + 1), device_tag(7, 0));
  EXPECT_EQ(device_tag(7, 0xffff'ffffu), device_tag(7, kDeviceCounterMask));
  std::uint32_t counter = 0xffff'ffffu;
  const Tag last = channel_tag(5, counter);
  ++counter;
  EXPECT_EQ(channel_tag(5, counter), channel_tag(5, 0));
  EXPECT_NE(last, channel_tag(5, counter));
}

TEST(Tag, AChannelIdThatIsTooLargeCannotChangeTheType) {
  EXPECT_EQ(channel_tag(kMaxChannelId + 1, 3), channel_tag(0, 3));
}

TEST(Tag, NeighboursDiffer) {
  std::set<Tag> tags;
  for (std::uint32_t id : {0u, 1u, kMaxChannelId}) {
    for (std::uint32_t counter : {0u, 1u, kDeviceCounterMask}) {
      tags.insert(device_tag(id, counter));
      tags.insert(channel_tag(id, counter));
    }
  }
  EXPECT_EQ(tags.size(), 18u);
}

}  // namespace
}  // namespace weft::machine
