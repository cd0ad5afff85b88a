#include "machine/ucx/messages/small_put_messages.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <tuple>

namespace weft::machine::ucx {
namespace {

auto values_of(const SmallPutRequest& request) {
  return std::tuple(request.region, request.offset_bytes, request.slot, request.source_pe, request.number);
}
auto values_of(const SmallPutAnswer& answer) {
  return std::tuple(answer.slot, answer.source_pe, answer.number, answer.code);
}

TEST(SmallPutMessagesTest, EachValueKeepsItsBits) {
  const auto largest = [](int bits) { return SmallPutRequest::mask(bits); };
  const SmallPutRequest full{largest(SmallPutRequest::kRegionBits), largest(SmallPutRequest::kOffsetBits),
                             static_cast<std::uint32_t>(largest(SmallPutRequest::kSlotBits)),
                             static_cast<std::uint32_t>(largest(SmallPutRequest::kPeBits)),
                             static_cast<std::uint32_t>(largest(SmallPutRequest::kNumberBits))};
  for (const SmallPutRequest& request :
       {SmallPutRequest{}, full, SmallPutRequest{full.region, 0, 0, 0, 0},
        SmallPutRequest{0, full.offset_bytes, 0, 0, 0}, SmallPutRequest{0, 0, full.slot, 0, 0},
        SmallPutRequest{0, 0, 0, full.source_pe, 0}, SmallPutRequest{0, 0, 0, 0, full.number},
        SmallPutRequest{1, 2, 3, 4, 5}}) {
    EXPECT_EQ(values_of(SmallPutRequest::unpack(request.pack())), values_of(request));
  }
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  for (const SmallPutAnswer& answer :
       {SmallPutAnswer{}, SmallPutAnswer{kMost, kMost, kMost, kMost}, SmallPutAnswer{kMost, 0, 0, 0},
        SmallPutAnswer{0, kMost, 0, 0}, SmallPutAnswer{0, 0, kMost, 0}, SmallPutAnswer{0, 0, 0, kMost},
        SmallPutAnswer{1, 2, 3, 4}}) {
    EXPECT_EQ(values_of(SmallPutAnswer::unpack(answer.pack())), values_of(answer));
  }
}

// Bytes from a peer may be any: what is read fits its bits, whatever they are.
TEST(SmallPutMessagesTest, AnyBytesReadAsValuesInTheirRanges) {
  const MessageWords all = {~std::uint64_t{0}, ~std::uint64_t{0}};
  const SmallPutRequest request = SmallPutRequest::unpack(all);
  EXPECT_EQ(request.pack(), all);
  EXPECT_LE(request.offset_bytes, SmallPutRequest::mask(SmallPutRequest::kOffsetBits));
  EXPECT_LE(request.source_pe, SmallPutRequest::mask(SmallPutRequest::kPeBits));
  MessageWords words;
  const std::array<std::byte, 24> bytes{};
  EXPECT_TRUE(read_words(bytes.data(), 16, words));
  for (const std::size_t size : {0, 8, 15, 17, 24}) EXPECT_FALSE(read_words(bytes.data(), size, words));
}

}  // namespace
}  // namespace weft::machine::ucx
