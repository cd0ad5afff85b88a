#include "job/trace/protobuf.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::job {
namespace {

using namespace std::string_literals;

// The examples of https://protobuf.dev/programming-guides/encoding.
TEST(Protobuf, WritesTheExamplesOfItsSpecification) {
  Protobuf out;
  out.number(1, 150);
  EXPECT_EQ(out.bytes(), "\x08\x96\x01");
  out.clear();
  out.text(2, "testing");
  EXPECT_EQ(out.bytes(), "\x12\x07testing");
  out.clear();
  out.message(3, [&] { out.number(1, 150); });
  EXPECT_EQ(out.bytes(), "\x1a\x03\x08\x96\x01");
}

TEST(Protobuf, WritesFixedNumbersAndLargeOnes) {
  Protobuf out;
  out.fixed(47, 0x0102030405060708);
  EXPECT_EQ(out.bytes(), "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01");
  out.clear();
  out.number(1, ~std::uint64_t{0});
  EXPECT_EQ(out.bytes(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(Protobuf, LengthensTheLengthOfALongMessage) {
  for (const auto& [size, length] :
       {std::pair{127, "\x7f"s}, std::pair{128, "\x80\x01"s}, std::pair{20000, "\xa0\x9c\x01"s}}) {
    Protobuf out;
    const std::string text(static_cast<std::size_t>(size) - (size < 130 ? 2 : 4), 'x');
    out.message(1, [&] { out.text(1, text); });
    EXPECT_EQ(out.bytes().substr(0, 1 + length.size()), "\x0a" + length) << size;
    EXPECT_TRUE(out.bytes().ends_with(text));
    EXPECT_EQ(out.bytes().size(), 1 + length.size() + static_cast<std::size_t>(size));
  }
}

}  // namespace
}  // namespace weft::job
