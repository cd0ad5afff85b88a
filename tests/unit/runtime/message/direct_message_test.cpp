// Direct messages as a peer may send them, and to whom they go.
#include "weft/runtime/direct_message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/message/outgoing.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using testing::InProcessJob;

constexpr HandlerId kDirectHandler = 250;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class DirectMessageTest : public ::testing::Test {
 protected:
  DirectMessageTest() : job_(2, "ucx") {
    job_.runtime(1).set_urgent_handler(kDirectHandler, [](void*, MessagePtr) {}, this);
    job_.runtime(1).set_direct_handler(kDirectHandler, [](void* self, const DirectArrival& arrival) {
      auto* const test = static_cast<DirectMessageTest*>(self);
      test->source_pe_ = arrival.source_pe;
      for (const auto part : {arrival.header, arrival.payload})
        test->seen_.append(reinterpret_cast<const char*>(part.data()), part.size());
      return false;
    });
  }
  std::string failure_after_turns() {
    int turns = 0;
    return job_.run_until([&] { return ++turns > 100; });
  }
  // What PE 1 says to an active message with these bytes.
  std::string deliver(std::span<const std::byte> header) {
    EXPECT_TRUE(job_.runtime(0).machine().am_send_at_once(1, kDirectMessageAm, header, {}));
    return failure_after_turns();
  }

  InProcessJob job_;
  std::string seen_;
  int source_pe_ = -1;
};

TEST_F(DirectMessageTest, HeaderAndPayloadReachTheHandler) {
  const std::uint64_t header = 0x3837363534333231;
  ASSERT_TRUE(job_.runtime(0).send_direct(1, kDirectHandler, header, bytes_of("payload")));
  ASSERT_TRUE(job_.runtime(0).send_direct(1, kDirectHandler, header, {}));
  EXPECT_EQ(failure_after_turns(), "");
  EXPECT_EQ(seen_, "12345678payload12345678");
  EXPECT_EQ(source_pe_, 0);
}

TEST_F(DirectMessageTest, ThereIsNoDirectWayToAPeThatDoesNotExist) {
  EXPECT_FALSE(job_.runtime(0).send_direct(2, kDirectHandler, std::uint64_t{1}, {}));
  EXPECT_FALSE(job_.runtime(0).send_direct(-1, kDirectHandler, std::uint64_t{1}, {}));
}

TEST_F(DirectMessageTest, AShortEnvelopeEndsTheJob) {
  EXPECT_NE(deliver(bytes_of("short")).find("a direct message arrived with a header of 5 bytes"),
            std::string::npos);
}

TEST_F(DirectMessageTest, AHandlerWithoutDirectMessagesEndsTheJob) {
  const DirectEnvelope envelope{.handler = kDirectHandler + 1};
  EXPECT_NE(deliver(std::as_bytes(std::span(&envelope, 1))).find("names handler 251"), std::string::npos);
}

TEST_F(DirectMessageTest, AHandlerBeyondAllEndsTheJob) {
  const DirectEnvelope envelope{.handler = 0xffff};
  EXPECT_NE(deliver(std::as_bytes(std::span(&envelope, 1))).find("names handler 65535"), std::string::npos);
}

TEST_F(DirectMessageTest, ASenderThatClaimsToBeTheReceiverEndsTheJob) {
  const DirectEnvelope envelope{.handler = kDirectHandler, .source_pe = 1};
  EXPECT_NE(deliver(std::as_bytes(std::span(&envelope, 1))).find("from PE 1"), std::string::npos);
  EXPECT_EQ(seen_, "");
}

TEST_F(DirectMessageTest, ASenderThatDoesNotExistEndsTheJob) {
  const DirectEnvelope envelope{.handler = kDirectHandler, .source_pe = 2};
  EXPECT_NE(deliver(std::as_bytes(std::span(&envelope, 1))).find("from PE 2"), std::string::npos);
  EXPECT_EQ(seen_, "");
}

}  // namespace
}  // namespace weft::runtime
