
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/message/attached.h"
#include "runtime/message/payload_tag.h"
#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

INSTANTIATE_TEST_SUITE_P(Ways, AttachmentsTest, ::testing::ValuesIn(kEveryWay), name_of);

TEST_P(AttachmentsTest, SeveralArriveWithTheirMessageAndAreGivenBackOnce) {
  std::vector<TestMemory> sent;
  for (std::size_t size : {1, 0, 4096, 1'000'003})
    sent.push_back(given(size, static_cast<std::uint8_t>(size)));
  Operation operation = send(1, sent);
  expect_arrival(1);
  std::uint64_t payload = 0;
  inbox(1).messages[0]->unpacker() | payload;
  EXPECT_EQ(payload, 7u);
  ASSERT_EQ(inbox(1).messages[0]->attachments().size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(inbox(1).bytes(0, i), sent[i].filled()) << i;
  EXPECT_EQ(inbox(1).buffer(0, 3).place, place()) << "what the runtime allocates is of the sender's kind";
  expect_end(operation);
  EXPECT_EQ(job.run_until([&] { return released == 4; }), "");
}

TEST_P(AttachmentsTest, OneOfAnySizeArrives) {
  for (std::size_t size : {0, 8, 5000, 300'000}) {
    std::vector<TestMemory> sent = one(size);
    EXPECT_TRUE(outcome(send(1, sent)).ok());
    expect_arrival(1);
    EXPECT_EQ(inbox(1).bytes(0, 0), sent[0].filled()) << size;
    EXPECT_EQ(inbox(1).buffer(0, 0).place, size == 0 ? inbox(1).buffer(0, 0).place : place());
    inbox(1).messages.clear();
  }
}

TEST_P(AttachmentsTest, LandWhereThePosterSays) {
  for (std::size_t size : {64, 100'000}) {
    for (Kind kind : {Kind::kHost, Kind::kEmulated}) {
      TestMemory into(job.memory(1), Place{kind, 0}, size);
      inbox(1).post_with([&](MessagePtr& message, std::span<ReceiveBuffer> receive_buffers) {
        std::uint64_t payload = 0;
        message->unpacker() | payload;
        EXPECT_EQ(payload, 7u);
        EXPECT_EQ(receive_buffers.size(), 1u);
        EXPECT_EQ(receive_buffers[0].size_bytes, size);
        EXPECT_EQ(receive_buffers[0].place, place());
        receive_buffers[0].into = Attachment(into.buffer());
        return true;
      });
      std::vector<TestMemory> sent = one(size);
      EXPECT_TRUE(outcome(send(1, sent)).ok());
      expect_arrival(1);
      EXPECT_EQ(inbox(1).buffer(0, 0).data, into.buffer().data);
      EXPECT_EQ(into.now(), sent[0].filled());
      inbox(1).messages.clear();
    }
  }
}

TEST_P(AttachmentsTest, LargerRoomIsFilledAtItsBeginningAndSmallerRoomTakesTheLeadingPart) {
  for (std::size_t size : {1000, 200'000}) {
    for (std::size_t capacity : {size * 2, size / 2, std::size_t{0}}) {
      TestMemory into(job.memory(1), place(), capacity, 100);
      inbox(1).post_with([&](MessagePtr&, std::span<ReceiveBuffer> receive_buffers) {
        receive_buffers[0].into = Attachment(into.buffer());
        return true;
      });
      std::vector<TestMemory> sent = one(size);
      EXPECT_TRUE(outcome(send(1, sent)).ok());
      expect_arrival(1);
      std::size_t landed = std::min(size, capacity);
      EXPECT_EQ(inbox(1).buffer(0, 0).size_bytes, landed);
      Bytes expected = into.filled();
      std::copy_n(sent[0].filled().begin(), landed, expected.begin());
      EXPECT_EQ(into.now(), expected);
      inbox(1).messages.clear();
    }
  }
}

TEST_P(AttachmentsTest, ToTheOwnPeAreCopiedToWhereThePosterSays) {
  for (bool chooses : {false, true}) {
    TestMemory into(job.memory(0), Place{Kind::kEmulated, 1}, 100'000);
    inbox(0).post_with([&](MessagePtr&, std::span<ReceiveBuffer> receive_buffers) {
      if (chooses) receive_buffers[0].into = Attachment(into.buffer());
      return true;
    });
    released = 0;
    std::vector<TestMemory> sent = one(70'000);
    Operation operation = send(0, sent);
    EXPECT_FALSE(operation.is_done());
    expect_arrival(0);
    EXPECT_EQ(inbox(0).bytes(0, 0), sent[0].filled());
    EXPECT_EQ(inbox(0).buffer(0, 0).place, chooses ? (Place{Kind::kEmulated, 1}) : place());
    EXPECT_NE(inbox(0).buffer(0, 0).data, sent[0].buffer().data) << "the receiver's own";
    expect_end(operation);
    EXPECT_EQ(released, 1);
    inbox(0).messages.clear();
  }
}

TEST_P(AttachmentsTest, GoOnWithAForwardedMessageToWhereThePosterThereSays) {
  TestMemory into(job.memory(2), Place{}, 70'000);
  inbox(2).post_with([&](MessagePtr&, std::span<ReceiveBuffer> receive_buffers) {
    EXPECT_EQ(receive_buffers[0].place, place());
    receive_buffers[0].into = Attachment(into.buffer());
    return true;
  });
  std::vector<TestMemory> sent = one(70'000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  MessagePtr on_its_way = std::move(inbox(1).messages[0]);
  inbox(1).messages.clear();
  const void* where = on_its_way->attachments()[0].buffer().data;
  job.runtime(1).send(1, std::move(on_its_way));  // kept for a while where it is
  expect_arrival(1);
  EXPECT_EQ(inbox(1).buffer(0, 0).data, where) << "what has landed is not copied again";
  job.runtime(1).send(2, std::move(inbox(1).messages[0]));
  expect_arrival(2);
  EXPECT_EQ(into.now(), sent[0].filled());
}

TEST_P(AttachmentsTest, APosterThatComesLaterMovesWhatHasLanded) {
  std::vector<TestMemory> sent = one(3000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  TestMemory into(job.memory(1), place(), 3000);
  inbox(1).post_with([&](MessagePtr&, std::span<ReceiveBuffer> receive_buffers) {
    receive_buffers[0].into = Attachment(into.buffer());
    return true;
  });
  MessagePtr waited = std::move(inbox(1).messages[0]);
  inbox(1).messages.clear();
  job.runtime(1).send(1, std::move(waited));
  expect_arrival(1);
  EXPECT_EQ(into.now(), sent[0].filled());
}

TEST_P(AttachmentsTest, AMessageThatIsNotWantedComesFree) {
  inbox(1).post_with([](MessagePtr&, std::span<ReceiveBuffer>) { return false; });
  std::vector<TestMemory> sent = one(200'000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  EXPECT_EQ(job.run_until([&] { return job.runtime(1).processed() == 1; }), "");
  EXPECT_EQ(inbox(1).posted, 1);
  EXPECT_TRUE(inbox(1).messages.empty());
}

// Its owner may have other data land there, or may have freed it.
TEST_P(AttachmentsTest, MemoryThatARefusingPosterChoseIsLeftAlone) {
  for (const std::size_t size : {64, 200'000}) {
    TestMemory into(job.memory(1), place(), size, 50);
    const auto before = into.now();
    inbox(1).post_with([&](MessagePtr&, std::span<ReceiveBuffer> receive_buffers) {
      receive_buffers[0].into = Attachment(into.buffer());
      return false;
    });
    std::vector<TestMemory> sent = one(size);
    const std::uint64_t processed = job.runtime(1).processed();
    EXPECT_TRUE(outcome(send(1, sent)).ok());
    EXPECT_EQ(job.run_until([&] { return job.runtime(1).processed() > processed; }), "");
    turns(100);
    EXPECT_EQ(into.now(), before) << size;
    EXPECT_TRUE(inbox(1).messages.empty());
  }
}

TEST_P(AttachmentsTest, APosterThatThrowsEndsTheJob) {
  inbox(1).post_with(
      [](MessagePtr&, std::span<ReceiveBuffer>) -> bool { throw std::runtime_error("no such place"); });
  std::vector<TestMemory> sent = one(200'000);
  send(1, sent).detach();
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("no such place"), std::string::npos) << failure;
  EXPECT_NE(failure.find("message from PE 0"), std::string::npos) << failure;
}

TEST_P(AttachmentsTest, ManyMessagesKeepTheirsApart) {
  std::vector<std::vector<TestMemory>> all(50);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k <= i % 4; ++k)
      all[i].push_back(given(1000 + i, static_cast<std::uint8_t>(i * 4 + k)));
    send(2, all[i]).detach();
  }
  expect_arrival(2, all.size());
  for (std::size_t m = 0; m < all.size(); ++m) {
    std::size_t which = inbox(2).bytes(m, 0).size() - 1000;  // their order is not promised
    ASSERT_EQ(inbox(2).messages[m]->attachments().size(), all[which].size());
    for (std::size_t k = 0; k < all[which].size(); ++k)
      EXPECT_EQ(inbox(2).bytes(m, k), all[which][k].filled());
  }
}

TEST_P(AttachmentsTest, CounterWraps) {
  std::vector<TestMemory> sent;
  for (std::uint8_t i = 0; i < 4; ++i) sent.push_back(given(500, i));
  Outgoing from(job.runtime(0), GetParam().path);
  from.set_next_counter(kPayloadCounterMask - 1);
  MessagePtr outgoing = message();
  for (TestMemory& one : sent) outgoing->attach(attachment(one));
  from.send(1, std::move(outgoing));
  expect_arrival(1);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(inbox(1).bytes(0, i), sent[i].filled());
}

TEST_P(AttachmentsTest, AreGivenBackWhenTheRuntimeClosesFirst) {
  std::vector<TestMemory> sent = one(1'000'000);
  std::vector<TestMemory> own = one(1'000'000);
  Operation remote = send(1, sent);
  Operation local = send(0, own);
  turns(1);
  job.runtime(1).close();
  job.runtime(0).close();
  EXPECT_EQ(released, 2);
  EXPECT_TRUE(remote.is_done());
  EXPECT_TRUE(local.is_done());
}

}  // namespace
}  // namespace weft::runtime
