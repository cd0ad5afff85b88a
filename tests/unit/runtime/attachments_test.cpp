#include "runtime/attachments.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "machine/tag.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

constexpr HandlerId kHandler = kFirstPythonHandler;

// What the sender attaches, and how often it got it back.
struct Sent {
  explicit Sent(std::size_t size_bytes, std::uint8_t first) : bytes(size_bytes) {
    std::iota(bytes.begin(), bytes.end(), first);
  }
  Attachment attachment() {
    auto release = [](void* owner, const memory::Buffer&) { ++static_cast<Sent*>(owner)->released; };
    return Attachment(memory::Buffer{bytes.data(), bytes.size(), {}, nullptr}, release, this);
  }
  std::vector<std::uint8_t> bytes;
  int released = 0;
};

// Keeps the messages that arrive on one PE.
struct Inbox {
  explicit Inbox(Runtime& runtime) {
    runtime.set_handler(
        kHandler,
        [](void* context, MessagePtr message) {
          static_cast<Inbox*>(context)->messages.push_back(std::move(message));
        },
        this);
  }
  std::vector<std::uint8_t> bytes(std::size_t message, std::size_t attachment) const {
    const memory::Buffer& buffer = messages[message]->attachments()[attachment].buffer();
    const auto* data = static_cast<const std::uint8_t*>(buffer.data);
    return {data, data + buffer.size_bytes};
  }
  std::vector<MessagePtr> messages;
};

struct AttachmentsTest : ::testing::Test {
  testing::InProcessJob job{3};
  std::vector<std::unique_ptr<Inbox>> inboxes;

  AttachmentsTest() {
    for (int pe = 0; pe < 3; ++pe) inboxes.push_back(std::make_unique<Inbox>(job.runtime(pe)));
  }
  ~AttachmentsTest() override { inboxes.clear(); }

  MessagePtr message(std::vector<Sent>& sent) {
    MessagePtr made = Message::pack(job.runtime(0), kHandler, std::uint64_t{7});
    for (Sent& one : sent) made->attach(one.attachment());
    return made;
  }
  void expect_arrival(int pe, std::size_t count = 1) {
    EXPECT_EQ(job.run_until([&] { return inboxes[static_cast<std::size_t>(pe)]->messages.size() == count; }),
              "");
  }
};

TEST_F(AttachmentsTest, ArriveWithTheirMessageAndAreGivenBackOnce) {
  std::vector<Sent> sent;
  for (std::size_t size : {1, 4096, 1'000'003}) sent.emplace_back(size, static_cast<std::uint8_t>(size));
  job.runtime(0).send(1, message(sent));
  expect_arrival(1);
  std::uint64_t payload = 0;
  inboxes[1]->messages[0]->unpacker() | payload;
  EXPECT_EQ(payload, 7u);
  ASSERT_EQ(inboxes[1]->messages[0]->attachments().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(inboxes[1]->bytes(0, i), sent[i].bytes);
  EXPECT_EQ(job.run_until([&] { return sent[0].released + sent[1].released + sent[2].released == 3; }), "");
  for (const Sent& one : sent) EXPECT_EQ(one.released, 1);
}

TEST_F(AttachmentsTest, ToTheOwnPeAreCopiedAtTheCall) {
  std::vector<Sent> sent;
  sent.emplace_back(100'000, std::uint8_t{3});
  std::vector<std::uint8_t> as_sent = sent[0].bytes;
  job.runtime(0).send(0, message(sent));
  EXPECT_EQ(sent[0].released, 1);
  sent[0].bytes.assign(100'000, 0);
  expect_arrival(0);
  EXPECT_EQ(inboxes[0]->bytes(0, 0), as_sent);
}

TEST_F(AttachmentsTest, GoOnWithAForwardedMessage) {
  std::vector<Sent> sent;
  sent.emplace_back(70'000, std::uint8_t{9});
  job.runtime(0).send(1, message(sent));
  expect_arrival(1);
  MessagePtr on_its_way = std::move(inboxes[1]->messages[0]);
  inboxes[1]->messages.clear();
  job.runtime(1).send(1, std::move(on_its_way));  // kept for a while where it is
  expect_arrival(1);
  job.runtime(1).send(2, std::move(inboxes[1]->messages[0]));
  expect_arrival(2);
  EXPECT_EQ(inboxes[2]->bytes(0, 0), sent[0].bytes);
}

TEST_F(AttachmentsTest, ManyMessagesKeepTheirsApart) {
  std::vector<std::vector<Sent>> all(50);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k <= i % 4; ++k)
      all[i].emplace_back(1000 + i, static_cast<std::uint8_t>(i * 4 + k));
    job.runtime(0).send(2, message(all[i]));
  }
  expect_arrival(2, all.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    std::vector<std::uint8_t> first = inboxes[2]->bytes(m, 0);
    std::size_t which = first.size() - 1000;  // their order is not promised
    ASSERT_EQ(inboxes[2]->messages[m]->attachments().size(), all[which].size());
    for (std::size_t k = 0; k < all[which].size(); ++k)
      EXPECT_EQ(inboxes[2]->bytes(m, k), all[which][k].bytes);
  }
}

TEST_F(AttachmentsTest, CounterWraps) {
  std::vector<Sent> sent;
  for (int i = 0; i < 4; ++i) sent.emplace_back(500, static_cast<std::uint8_t>(i));
  Attachments from(job.runtime(0));
  Attachments to(job.runtime(1));
  from.set_next_counter(machine::kDeviceCounterMask - 1);
  MessagePtr outgoing = message(sent);
  auto announced = from.announce(*outgoing);
  EXPECT_EQ(announced[1].counter, machine::kDeviceCounterMask);
  EXPECT_EQ(announced[2].counter, 0u);
  from.send(1, *outgoing, announced);
  MessagePtr incoming = Message::pack(job.runtime(1), kHandler, std::uint64_t{7});
  ASSERT_TRUE(to.expect(*incoming, std::as_bytes(std::span(announced))).ok());
  EXPECT_TRUE(Attachments::has_awaited(*incoming));
  to.land(std::move(incoming));
  expect_arrival(1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(inboxes[1]->bytes(0, i), sent[i].bytes);
}

TEST_F(AttachmentsTest, NonsenseHeadersAreRefused) {
  Attachments to(job.runtime(1));
  MessagePtr incoming = Message::pack(job.runtime(1), kHandler, std::uint64_t{7});
  std::vector<std::byte> header(15);
  EXPECT_EQ(to.expect(*incoming, header).code(), base::StatusCode::kCorrupt);
  header.resize(sizeof(Attachments::Announcement) * (Message::kMaxAttachments + 1));
  EXPECT_EQ(to.expect(*incoming, header).code(), base::StatusCode::kCorrupt);
}

TEST_F(AttachmentsTest, AreGivenBackWhenTheRuntimeClosesFirst) {
  std::vector<Sent> sent;
  sent.emplace_back(1'000'000, std::uint8_t{1});
  job.runtime(0).send(1, message(sent));
  job.runtime(1).close();
  job.runtime(0).close();
  EXPECT_EQ(sent[0].released, 1);
}

}  // namespace
}  // namespace weft::runtime
