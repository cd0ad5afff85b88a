// Messages that leave the start of their envelope at home.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

struct ShortMessageTest : ::testing::TestWithParam<std::string>, AttachmentsJob {
  ShortMessageTest() : AttachmentsJob(GetParam(), MessagingPath::kTagged) {}

  // Sends it from PE 2 to PE 1, where it arrives.
  const Message& arrived(MessagePtr sent) {
    job.runtime(2).send(1, std::move(sent));
    expect_arrival(1);
    return *inbox(1).messages.at(0);
  }
};

TEST_P(ShortMessageTest, ArrivesWithAWholeEnvelope) {
  for (const std::size_t size_bytes : {0, 8, 3000, 1'000'000}) {
    inbox(1).messages.clear();
    MessagePtr sent = Message::create(job.runtime(2), kHandler, size_bytes);
    for (std::size_t i = 0; i < size_bytes; ++i) sent->payload()[i] = static_cast<std::byte>(i);
    const Message& message = arrived(std::move(sent));
    EXPECT_EQ(message.envelope().handler, kHandler);
    EXPECT_EQ(message.envelope().flags, 0);
    EXPECT_EQ(message.envelope().source_pe, 2u);
    EXPECT_EQ(message.envelope().root_pe, 2u);
    EXPECT_EQ(message.envelope().priority, 0);
    ASSERT_EQ(message.payload_bytes(), size_bytes);
    const auto* const payload = reinterpret_cast<const std::byte*>(&message + 1);
    for (std::size_t i = 0; i < size_bytes; ++i) ASSERT_EQ(payload[i], static_cast<std::byte>(i)) << i;
  }
}

TEST_P(ShortMessageTest, APriorityTravels) {
  MessagePtr sent = message(2);
  sent->envelope().priority = -5;
  EXPECT_EQ(arrived(std::move(sent)).envelope().priority, -5);
}

TEST_P(ShortMessageTest, APeThatForwardsIsNamed) {
  for (const std::size_t size_bytes : {8, 1'000'000}) {
    inbox(1).messages.clear();
    MessagePtr sent = Message::create(job.runtime(2), kHandler, size_bytes);
    sent->envelope().source_pe = 0;
    const Message& message = arrived(std::move(sent));
    EXPECT_EQ(message.envelope().source_pe, 0u);
    EXPECT_EQ(message.envelope().root_pe, 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, ShortMessageTest, ::testing::Values("loopback", "ucx"));

struct DamagedShortMessageTest : ::testing::Test {
  // What PE 1 says to it.
  static std::string deliver(const void* bytes, std::size_t size_bytes) {
    AttachmentsJob fresh("loopback", MessagingPath::kTagged);
    base::Completion completion([](base::Completion*, Status, std::size_t) {});
    static_cast<void>(fresh.job.runtime(0).machine().am_send(
        1, kShortMessageAm, {}, memory::ConstBuffer(bytes, size_bytes), &completion));
    fresh.turns(5);
    return fresh.job.runtime(1).failure();
  }
};

// The machine announces what the sender named; the bytes of the larger ones are never touched.
TEST_F(DamagedShortMessageTest, SizesThatCannotBeAreRefused) {
  const std::vector<std::byte> nothing(sizeof(Envelope));
  for (const std::size_t size_bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, ~std::size_t{0}, ~std::size_t{0} - 7,
        ~std::size_t{0} - 8, ~std::size_t{0} - 63, ~std::size_t{0} - 79, std::size_t{1} << 41}) {
    const std::string failure = deliver(nothing.data(), size_bytes);
    EXPECT_NE(failure.find("a message has"), std::string::npos) << size_bytes << ": " << failure;
  }
}

TEST_F(DamagedShortMessageTest, ASourceThatDoesNotExistIsRefused) {
  for (const std::uint32_t source_pe : {3u, ~0u}) {
    const Envelope envelope{.handler = kHandler, .source_pe = source_pe};
    const auto* const bytes = reinterpret_cast<const std::byte*>(&envelope) + Envelope::kUsualStartBytes;
    const std::string failure = deliver(bytes, sizeof envelope - Envelope::kUsualStartBytes);
    EXPECT_NE(failure.find("do all PEs run the same program?"), std::string::npos) << failure;
  }
}

TEST_F(DamagedShortMessageTest, AHandlerBeyondAllIsRefused) {
  const Envelope envelope{.handler = 0xffff};
  const auto* const bytes = reinterpret_cast<const std::byte*>(&envelope) + Envelope::kUsualStartBytes;
  EXPECT_NE(deliver(bytes, sizeof envelope - Envelope::kUsualStartBytes).find("names handler 65535"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::runtime
