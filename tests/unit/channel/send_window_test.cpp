#include "models/channel/unreceived/send_window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {
namespace {

constexpr std::size_t kSizeBytes = 64 * 1024;
constexpr auto kMostAhead =
    static_cast<std::size_t>((kSegments + 1) * (kSegmentBytes / static_cast<std::int64_t>(kSizeBytes)));

// A sender and a receiver of messages of one size, by numbers alone.
struct Stream {
  explicit Stream(std::uint32_t first) : next(first) { received.start_at(first); }
  void send(std::size_t size_bytes) {
    ++next;
    if (window.count(size_bytes)) window.end_segment(next);
    ++ahead;
  }
  void receive(std::size_t size_bytes) {
    --ahead;
    if (received.count(size_bytes)) window.received(received.report());
  }
  SendWindow window;
  ReceiveCount received;
  std::uint32_t next;
  std::size_t ahead = 0;
};

TEST(SendWindow, OpensAgainWhateverTheSizesAndWhenTheNumberWraps) {
  for (std::size_t size :
       {std::size_t{0}, std::size_t{8}, kSizeBytes, std::size_t{599'999}, std::size_t{1} << 30}) {
    Stream stream(0xffff'ff00);
    for (int round = 0; round < 20; ++round) {
      while (stream.window.is_open()) stream.send(size);
      EXPECT_LE(static_cast<std::int64_t>(stream.ahead) * window_cost(size), 2 * kSegments * kSegmentBytes);
      while (stream.ahead > 0) stream.receive(size);
      EXPECT_TRUE(stream.window.is_open()) << size;
    }
  }
}

struct SendWindowTest : ChannelPairTest {
  SendWindowTest() : ChannelPairTest(2) {}
};

TEST_P(SendWindowTest, SendsPastTheWindowWaitForReceives) {
  connect(0xffff'ffc0);
  const std::vector<std::uint8_t> bytes(kSizeBytes, 7);
  const std::size_t number = 2 * kMostAhead;
  std::vector<OutcomePtr> sends;
  for (std::size_t i = 0; i < number; ++i) sends.push_back(send(0, {bytes.data(), bytes.size()}));
  settle();
  const auto num_done = std::ranges::count_if(sends, [](const OutcomePtr& one) { return one->done; });
  EXPECT_LE(static_cast<std::size_t>(num_done), kMostAhead);
  std::vector<std::uint8_t> into(kSizeBytes);
  for (std::size_t i = 0; i < number; ++i) {
    const OutcomePtr received = receive(1, {into.data(), into.size(), {}, nullptr});
    finish({received});
    ASSERT_TRUE(received->status.ok()) << received->status.to_string();
    ASSERT_EQ(into, bytes);
  }
  finish(sends);
}

TEST_P(SendWindowTest, TheOrderIsKeptAcrossTheWindow) {
  connect();
  const std::size_t number = 3 * kMostAhead;
  std::vector<std::uint8_t> bytes(kSizeBytes);
  std::vector<std::vector<std::uint32_t>> sent(number, std::vector<std::uint32_t>(2000));
  std::vector<OutcomePtr> outcomes;
  for (std::size_t i = 0; i < number; ++i) {
    sent[i][0] = static_cast<std::uint32_t>(i);
    outcomes.push_back(send(0, {sent[i].data(), 8000}));
  }
  std::vector<std::uint32_t> into(2000);
  for (std::size_t i = 0; i < number; ++i) {
    finish({receive(1, {into.data(), 8000, {}, nullptr})});
    ASSERT_EQ(into[0], i);
  }
  finish(outcomes);
}

TEST_P(SendWindowTest, SendsThatHoldMoreThanTheLimitAreRefused) {
  connect();
  job.runtime(0).model<Channels>().set_limit(1 << 20);
  const std::vector<std::uint8_t> bytes(4096);
  std::string error;
  try {
    for (int i = 0; i < 100'000; ++i) channels[0].send({bytes.data(), bytes.size()}).detach();
  } catch (const Error& refused) {
    error = refused.what();
  }
  EXPECT_NE(error.find("sends hold"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Machines, SendWindowTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& machine) { return machine.param; });

}  // namespace
}  // namespace weft::channel
