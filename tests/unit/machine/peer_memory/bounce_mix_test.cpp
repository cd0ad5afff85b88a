// Messages between memory of every kind at once, of random sizes, behind random streams.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "tests/unit/machine/peer_memory/bounce_pair.h"

namespace weft::machine {
namespace {

using memory::Buffer;

struct BounceMix : BounceTest {};

TEST_P(BounceMix, EveryByteArrivesFromAndToAnyMemory) {
  start(0xffffffc0u);
  // Past a bounce buffer; few, because each buffer of each side holds them all and sanitized builds compare them.
  constexpr std::size_t kMessages = 150;
  constexpr std::size_t kMaxBytes = 20000;
  constexpr std::array<std::size_t, 12> kSizes{0, 1, 2, 255, 256, 257, 4095, 4096, 4097, 16384, 16385, 19999};
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < kMessages; ++i) {
      sizes.push_back(random() % 2 == 0 ? kSizes[random() % kSizes.size()] : random() % kMaxBytes);
    }
    const auto make_side = [&](std::size_t pe, std::uint8_t first) {
      Side side;
      side.allocations.emplace_back(memory(pe), memory::Place{}, kMessages * kMaxBytes, first);
      side.allocations.emplace_back(memory(pe), kDevice, kMessages * kMaxBytes, first);
      side.allocations.push_back(refusing(pe, kMessages * kMaxBytes, first));
      side.allocations.push_back(refusing(pe, kMessages * kMaxBytes, first, {kDevice.kind, 1}));
      for (const int device : {0, 0, 1, 1}) {
        side.streams.push_back(testing::emulated(memory(pe)).create_stream(device).value());
      }
      return side;
    };
    std::array<Side, 2> sides{make_side(0, static_cast<std::uint8_t>(seed)), make_side(1, 0)};
    const auto begin = [&](std::size_t pe) {
      Side& side = sides[pe];
      const std::size_t i = side.buffers.size();
      if (i == kMessages) return;
      const std::size_t which = random() % 8 == 0 ? 0 : 1 + random() % 3;
      Buffer part = side.allocations[which].buffer();
      part.data = static_cast<std::byte*>(part.data) + i * kMaxBytes;
      part.size_bytes = sizes[i];
      if (which != 0 && random() % 3 == 0) {
        part.stream = side.streams[static_cast<std::size_t>(part.place.device) * 2 + random() % 2];
      }
      side.buffers.push_back(part);
      side.outcomes.push_back(pe == 0 ? send(0, part) : receive(1, part));
    };
    const auto are_over = [&] { return sides[0].is_over(kMessages) && sides[1].is_over(kMessages); };
    for (int turn = 0; !are_over() && turn < 200'000; ++turn) {
      for (const std::size_t pe : {std::size_t{1}, std::size_t{0}}) {
        for (int starts = static_cast<int>(random() % 30); starts > 0; --starts) begin(pe);
      }
      for (int steps = static_cast<int>(random() % 8); steps > 0; --steps) step();
    }
    ASSERT_TRUE(are_over()) << "an operation hangs";
    expect_equal(sides);
    for (const std::size_t pe : {std::size_t{0}, std::size_t{1}}) destroy_streams(pe, sides[pe].streams);
  }
  EXPECT_GT(copies(0), 10u);
  EXPECT_GT(bounced(0), 10u);
  EXPECT_GT(pulled(0), 10u);
  EXPECT_GT(count(0, TransferPath::kStaged), 10u);
}

INSTANTIATE_TEST_SUITE_P(Machines, BounceMix, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::machine
