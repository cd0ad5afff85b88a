#include "weft/memory/buffer.h"

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

TEST(Buffer, KindNamesGoBothWays) {
  for (const Kind kind : {Kind::kHost, Kind::kCuda, Kind::kEmulated}) {
    EXPECT_EQ(kind_from_name(kind_name(kind)), kind);
  }
  EXPECT_EQ(kind_from_name("hip"), std::nullopt);
  EXPECT_EQ(kind_from_name(""), std::nullopt);
}

TEST(Buffer, PlaceNames) {
  EXPECT_EQ(place_name({}), "host");
  EXPECT_EQ(place_name({Kind::kCuda, 1}), "cuda:1");
  EXPECT_EQ(place_name({Kind::kEmulated, 0}), "emulated:0");
}

TEST(Buffer, ConstBufferTakesAllOfABuffer) {
  int value = 0;
  const Buffer buffer{&value, sizeof value, {Kind::kCuda, 3}, &value};
  const ConstBuffer same = buffer;
  EXPECT_EQ(same.data, buffer.data);
  EXPECT_EQ(same.size_bytes, buffer.size_bytes);
  EXPECT_EQ(same.place, buffer.place);
  EXPECT_EQ(same.stream, buffer.stream);
}

}  // namespace
}  // namespace weft::memory
