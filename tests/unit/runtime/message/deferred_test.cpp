// Messages that their poster defers: their buffers stay where they are until somebody gives them a place,
// releases the message, or the job ends.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

// More than any machine sends before the receiver asks for it.
constexpr std::size_t kLarge = 2'000'000;

struct DeferredTest : AttachmentsTest {
  DeferredTest() {
    for (int pe : {0, 1}) {
      inbox(pe).post_with([this](MessagePtr& message, std::span<ReceiveBuffer> receive_buffers) {
        if (!defers) {
          if (room) receive_buffers[0].into = Attachment(room->buffer());
          return true;
        }
        deferred.push_back(std::move(message));
        return false;
      });
    }
  }
  ~DeferredTest() override { deferred.clear(); }

  void expect_deferred(std::size_t count = 1) {
    EXPECT_EQ(job.run_until([&] { return deferred.size() == count; }), "");
  }
  MessagePtr take() {
    MessagePtr taken = std::move(deferred.back());
    deferred.pop_back();
    return taken;
  }
  void place_in(int pe, const Buffer& buffer) {
    MessagePtr message = take();
    std::vector<ReceiveBuffer> receive_buffers = job.runtime(pe).receive_buffers_of(*message);
    receive_buffers.at(0).into = Attachment(buffer);
    job.runtime(pe).place(std::move(message), receive_buffers);
  }
  // Whether the sender keeps the bytes until they are asked for: what staging copies through host memory is
  // on its way before.
  bool stays_at_sender() const { return GetParam().kind == Kind::kHost; }

  bool defers = true;
  std::optional<TestMemory> room;
  std::vector<MessagePtr> deferred;
};

INSTANTIATE_TEST_SUITE_P(Ways, DeferredTest, ::testing::ValuesIn(kEveryWay), name_of);

TEST_P(DeferredTest, StaysAtItsSenderUntilItIsPlaced) {
  for (int to : {1, 0}) {
    std::vector<TestMemory> sent = one(kLarge);
    TestMemory into(job.memory(to), place(), kLarge);
    released = 0;
    Operation operation = send(to, sent);
    expect_deferred();
    turns(300);
    if (stays_at_sender()) {
      EXPECT_FALSE(operation.is_done());
      EXPECT_EQ(released, 0);
    }
    EXPECT_TRUE(inbox(to).messages.empty());
    place_in(to, into.buffer());
    expect_arrival(to);
    EXPECT_EQ(inbox(to).buffer(0, 0).data, into.buffer().data);
    EXPECT_EQ(into.now(), sent[0].filled());
    EXPECT_TRUE(outcome(std::move(operation)).ok());
    EXPECT_EQ(released, 1);
    EXPECT_EQ(inbox(to).posted, 1);
    inbox(to).messages.clear();
  }
}

TEST_P(DeferredTest, SeveralArePlacedInAnyOrder) {
  std::vector<std::vector<TestMemory>> sent;
  std::vector<Operation> operations;
  for (std::size_t size : {std::size_t{40}, std::size_t{900}, std::size_t{20'000}, kLarge}) {
    sent.push_back(one(size));
    operations.push_back(send(1, sent.back()));
  }
  expect_deferred(sent.size());
  while (!deferred.empty()) {
    MessagePtr message = take();
    std::vector<ReceiveBuffer> receive_buffers = job.runtime(1).receive_buffers_of(*message);
    job.runtime(1).place(std::move(message), receive_buffers);
  }
  expect_arrival(1, sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    std::size_t found = 0;
    for (std::size_t m = 0; m < sent.size(); ++m)
      found += inbox(1).bytes(m, 0) == sent[i][0].filled() ? 1 : 0;
    EXPECT_EQ(found, 1u) << i;
  }
  for (Operation& operation : operations) EXPECT_TRUE(outcome(std::move(operation)).ok());
}

TEST_P(DeferredTest, IsAskedAboutAgain) {
  std::vector<TestMemory> sent = one(kLarge);
  Operation operation = send(1, sent);
  expect_deferred();
  job.runtime(1).post_again(take());
  expect_deferred();
  EXPECT_EQ(inbox(1).posted, 2);
  defers = false;
  room.emplace(job.memory(1), place(), kLarge);
  job.runtime(1).post_again(take());
  expect_arrival(1);
  EXPECT_EQ(room->now(), sent[0].filled());
  EXPECT_TRUE(outcome(std::move(operation)).ok());
  inbox(1).messages.clear();
}

TEST_P(DeferredTest, ReleasedIsRefusedAndItsSenderIsFree) {
  for (int to : {1, 0}) {
    for (std::size_t size : {std::size_t{500}, kLarge}) {
      const std::uint64_t processed = job.runtime(to).processed();
      std::vector<TestMemory> sent = one(size);
      Operation operation = send(to, sent);
      expect_deferred();
      deferred.clear();
      EXPECT_TRUE(outcome(std::move(operation)).ok());
      EXPECT_EQ(job.run_until([&] { return job.runtime(to).processed() == processed + 1; }), "");
      EXPECT_TRUE(inbox(to).messages.empty());
      EXPECT_EQ(inbox(to).dropped, 0);
    }
  }
}

TEST_P(DeferredTest, TheEndOfTheJobWaitsForNoPlace) {
  std::vector<TestMemory> sent = one(kLarge);
  Operation operation = send(1, sent);
  expect_deferred();
  job.runtime(0).exit(0);
  EXPECT_EQ(job.run_until([&] { return job.runtime(0).stopped() && job.runtime(1).stopped(); }), "");
  EXPECT_TRUE(outcome(std::move(operation)).ok());
  std::vector<ReceiveBuffer> none;
  job.runtime(1).place(take(), none);  // too late, and harmless
}

TEST_P(DeferredTest, IsOverWhenTheRuntimeClosesFirst) {
  std::vector<TestMemory> sent = one(kLarge);
  std::vector<TestMemory> own = one(kLarge);
  Operation remote = send(1, sent);
  Operation local = send(0, own);
  expect_deferred(2);
  job.runtime(1).close();
  job.runtime(0).close();
  deferred.clear();
  EXPECT_EQ(released, 2);
  EXPECT_TRUE(remote.is_done());
  EXPECT_TRUE(local.is_done());
}

TEST_P(DeferredTest, PlacesMustBeAsManyAsBuffers) {
  std::vector<TestMemory> sent = one(1000);
  Operation operation = send(1, sent);
  expect_deferred();
  std::vector<ReceiveBuffer> two(2);
  EXPECT_THROW(job.runtime(1).place(take(), two), Error);
  EXPECT_TRUE(outcome(std::move(operation)).ok()) << "a message that is refused frees its sender";
}

struct DeferredDeviceTest : DeferredTest {};
INSTANTIATE_TEST_SUITE_P(Ways, DeferredDeviceTest, ::testing::ValuesIn(kDeviceWays), name_of);

// On the tagged path the announcement is there before the buffer can fail; on the active one nothing arrives.
TEST_P(DeferredDeviceTest, WhoseSenderFailsIsDroppedWhereItIsPlaced) {
  std::vector<TestMemory> sent = one(kLarge);
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  weft::testing::emulated(job.memory(0)).set_faults(faults);
  Operation operation = send(1, sent);
  if (GetParam().path == MessagingPath::kTagged) {
    expect_deferred();
    TestMemory into(job.memory(1), place(), kLarge);
    place_in(1, into.buffer());
    EXPECT_EQ(job.run_until([&] { return inbox(1).dropped == 1; }), "");
  }
  EXPECT_TRUE(outcome(std::move(operation)).failed());
  EXPECT_TRUE(deferred.empty());
  EXPECT_TRUE(inbox(1).messages.empty());
}

}  // namespace
}  // namespace weft::runtime
