#include "machine/host_queue/waiting_messages.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace weft::machine {
namespace {

struct SentMessage {
  int pe = 0;
  AmId id = 0;
  std::size_t header_bytes = 0;
  std::byte first{};
  bool operator==(const SentMessage&) const = default;
};

struct CountedEnd : base::Completion {
  CountedEnd() : base::Completion(&CountedEnd::ended) {}
  static void ended(base::Completion* completion, base::Status status, std::size_t size_bytes) {
    auto* const self = static_cast<CountedEnd*>(completion);
    EXPECT_TRUE(status.ok());
    ++self->ends;
    self->size_bytes = size_bytes;
    if (self->then) self->then();
  }
  int ends = 0;
  std::size_t size_bytes = 0;
  std::function<void()> then;
};

struct WaitingMessagesTest : ::testing::Test {
  // Sends what waits, up to `most` messages.
  bool send(int most = 100) {
    return waiting.send(
        [&](int pe, AmId id, std::span<const std::byte> header, std::span<const std::byte> payload) {
          if (most-- == 0) return false;
          sent.push_back({pe, id, header.size(), payload.empty() ? std::byte{} : payload[0]});
          return true;
        },
        [&](int pe) { over.push_back(pe); });
  }
  WaitingMessages waiting;
  std::vector<SentMessage> sent;
  std::vector<int> over;
  std::byte one{1};
};

TEST_F(WaitingMessagesTest, EachPeGetsItsMessagesInTheirOrder) {
  CountedEnd end;
  waiting.add(2, 5, {}, {&one, 1}, &end);
  waiting.add(1, 6, {&one, 1}, {}, nullptr);
  waiting.add(2, 7, {}, {}, nullptr);
  EXPECT_TRUE(send());
  EXPECT_EQ(sent, (std::vector<SentMessage>{{1, 6, 1, {}}, {2, 5, 0, one}, {2, 7, 0, {}}}));
  EXPECT_EQ(over, (std::vector{1, 2}));
  EXPECT_EQ(end.ends, 1);
  EXPECT_EQ(end.size_bytes, 1u);
  EXPECT_TRUE(waiting.is_empty());
  EXPECT_FALSE(send());
}

TEST_F(WaitingMessagesTest, APayloadWithoutACompletionIsCopied) {
  std::byte payload{3};
  waiting.add(0, 1, {}, {&payload, 1}, nullptr);
  payload = std::byte{4};
  send();
  EXPECT_EQ(sent.at(0).first, std::byte{3});
}

TEST_F(WaitingMessagesTest, WhatIsNotSentStays) {
  for (AmId id = 0; id < 4; ++id) waiting.add(0, id, {}, {}, nullptr);
  EXPECT_TRUE(send(3));
  EXPECT_TRUE(over.empty());
  EXPECT_FALSE(send(0));
  EXPECT_TRUE(send(1));
  EXPECT_EQ(sent.back().id, 3);
  EXPECT_EQ(over, std::vector{0});
}

TEST_F(WaitingMessagesTest, ACompletionMayAddMessages) {
  CountedEnd end;
  end.then = [&] {
    waiting.add(0, 8, {}, {}, nullptr);
    waiting.add(1, 9, {}, {}, nullptr);
  };
  waiting.add(0, 7, {}, {}, &end);
  send();
  EXPECT_EQ(sent, (std::vector<SentMessage>{{0, 7, 0, {}}, {0, 8, 0, {}}, {1, 9, 0, {}}}));
  EXPECT_TRUE(waiting.is_empty());
}

TEST_F(WaitingMessagesTest, CopiesAreSentUpToTheFirstCompletion) {
  CountedEnd end;
  int left = 100;
  const auto send_one = [&](int pe, AmId id, std::span<const std::byte>, std::span<const std::byte>) {
    if (left-- == 0) return false;
    sent.push_back({pe, id, 0, {}});
    return true;
  };
  EXPECT_TRUE(waiting.send_copies(0, send_one)) << "nothing waits";
  waiting.add(0, 1, {}, {}, nullptr);
  waiting.add(0, 2, {}, {}, &end);
  waiting.add(0, 3, {}, {}, nullptr);
  waiting.add(1, 4, {}, {}, nullptr);
  waiting.add(1, 5, {}, {}, nullptr);
  EXPECT_FALSE(waiting.send_copies(0, send_one));
  EXPECT_EQ(end.ends, 0);
  left = 1;
  EXPECT_FALSE(waiting.send_copies(1, send_one));
  left = 1;
  EXPECT_TRUE(waiting.send_copies(1, send_one));
  EXPECT_EQ(sent, (std::vector<SentMessage>{{0, 1, 0, {}}, {1, 4, 0, {}}, {1, 5, 0, {}}}));
}

TEST_F(WaitingMessagesTest, ACompletionMayTakeAllAway) {
  CountedEnd end;
  CountedEnd other;
  end.then = [&] { EXPECT_EQ(waiting.take_completions(), std::vector<base::Completion*>{&other}); };
  waiting.add(0, 7, {}, {}, &end);
  waiting.add(0, 8, {}, {}, &other);
  waiting.add(3, 8, {}, {}, nullptr);
  send();
  EXPECT_EQ(sent.size(), 1u);
  EXPECT_EQ(other.ends, 0);
  EXPECT_TRUE(over.empty());
}

}  // namespace
}  // namespace weft::machine
