// Attachments in device memory: streams that are waited for, and what fails.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "runtime/message/attached.h"
#include "tests/support/busy_stream.h"
#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

// Only device memory has streams, copies that fail and allocations that run out.
struct DeviceAttachmentsTest : AttachmentsTest {
  // A stream of PE `pe` that stays busy until `done` says otherwise.
  memory::StreamHandle busy_stream(int pe, const bool& done) {
    return weft::testing::stream_with(weft::testing::emulated(job.memory(pe)), 0, weft::testing::until(done));
  }
  void fail_next_copy(int pe) {
    memory::EmulatedFaults faults;
    faults.fail_copy = 1;
    weft::testing::emulated(job.memory(pe)).set_faults(faults);
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, DeviceAttachmentsTest, ::testing::ValuesIn(kDeviceWays), name_of);

TEST_P(DeviceAttachmentsTest, ASendWaitsForItsStreamAndNobodyElseDoes) {
  for (int to : {1, 0}) {
    bool done = false;
    std::vector<TestMemory> slow = one(50'000);
    std::vector<TestMemory> quick = one(60'000);
    slow[0].buffer().stream = busy_stream(0, done);
    Operation waiting = send(to, slow);
    EXPECT_TRUE(outcome(send(to, quick)).ok());
    expect_arrival(to);
    EXPECT_EQ(inbox(to).bytes(0, 0).size(), 60'000u);
    turns(100);
    EXPECT_FALSE(waiting.is_done());
    done = true;
    expect_end(waiting);
    expect_arrival(to, 2);
    EXPECT_EQ(inbox(to).bytes(1, 0), slow[0].filled());
    inbox(to).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, ALandingWaitsForItsStream) {
  for (std::size_t capacity : {50'000, 20'000}) {
    bool done = false;
    TestMemory into(job.memory(1), place(), capacity);
    into.buffer().stream = busy_stream(1, done);
    inbox(1).post_with([&](MessagePtr&, std::span<ReceiveBuffer> receive_buffers) {
      receive_buffers[0].into = Attachment(into.buffer());
      return true;
    });
    std::vector<TestMemory> sent = one(50'000);
    Operation operation = send(1, sent);
    turns(100);
    EXPECT_EQ(into.now(), into.filled()) << "a kernel still uses it";
    done = true;
    expect_arrival(1);
    EXPECT_EQ(into.now(),
              Bytes(sent[0].filled().begin(), sent[0].filled().begin() + static_cast<int>(capacity)));
    expect_end(operation);
    inbox(1).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, WhatAPosterKeepsGoesWithItsMessage) {
  for (int to : {1, 0}) {
    const auto kept = std::make_shared<int>(5);
    inbox(to).post_with([&](MessagePtr& message, std::span<ReceiveBuffer>) {
      message->keep(kept);
      return true;
    });
    std::vector<TestMemory> sent = one(50'000);
    fail_next_copy(0);
    EXPECT_TRUE(outcome(send(to, sent)).failed());
    EXPECT_TRUE(outcome(send(to, sent)).ok());
    expect_arrival(to);
    // As one active message, what fails before it is sent is not posted either.
    EXPECT_EQ(inbox(to).dropped, inbox(to).posted - 1);
    EXPECT_EQ(kept.use_count(), 2);
    EXPECT_EQ(inbox(to).messages[0]->take_kept(), kept);
    EXPECT_EQ(inbox(to).messages[0]->take_kept(), nullptr);
    inbox(to).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, ACopyThatFailsAtTheSenderIsToldToItAndTheReceiverDropsTheMessage) {
  for (int to : {1, 0}) {
    std::uint64_t processed = job.runtime(0).processed() + job.runtime(to).processed();
    std::vector<TestMemory> sent;
    sent.push_back(given(5000));
    if (to == 1 && GetParam().path == MessagingPath::kTagged) sent.push_back(given(6000));
    fail_next_copy(0);
    Status status = outcome(send(to, sent));
    EXPECT_TRUE(status.failed());
    EXPECT_EQ(
        job.run_until([&] { return job.runtime(0).processed() + job.runtime(to).processed() > processed; }),
        "");
    EXPECT_TRUE(inbox(to).messages.empty());
    std::vector<TestMemory> next = one(5000);  // the pair goes on
    EXPECT_TRUE(outcome(send(to, next)).ok());
    expect_arrival(to);
    inbox(to).messages.clear();
  }
}

TEST_P(DeviceAttachmentsTest, ACopyThatFailsUnseenEndsTheJob) {
  std::vector<TestMemory> sent = one(5000);
  fail_next_copy(0);
  send(1, sent).detach();
  EXPECT_NE(job.run_until([] { return false; }), "");
}

TEST_P(DeviceAttachmentsTest, ALandingCopyThatFailsEndsTheJob) {
  std::vector<TestMemory> sent = one(5000);
  fail_next_copy(1);
  Operation operation = send(1, sent);
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("a buffer of 5000 bytes that came with a message from PE 0 could not be received"),
            std::string::npos)
      << failure;
}

TEST_P(DeviceAttachmentsTest, AFreedBufferUnderAPendingSendIsAFailureAndNoCrash) {
  for (int to : {1, 0}) {
    bool done = false;
    std::vector<TestMemory> sent = one(5000);
    sent[0].buffer().stream = busy_stream(0, done);
    Operation operation = send(to, sent);
    turns(3);
    sent[0].free();
    done = true;
    EXPECT_TRUE(outcome(std::move(operation)).failed());
    EXPECT_TRUE(inbox(to).messages.empty());
  }
}

TEST_P(DeviceAttachmentsTest, WithoutMemoryToLandInTheJobEndsWithASentence) {
  memory::EmulatedFaults faults;
  faults.device_bytes = 1000;
  weft::testing::emulated(job.memory(1)).set_faults(faults);
  std::vector<TestMemory> sent = one(5000);
  Operation operation = send(1, sent);
  std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("there is no emulated:0 memory for a buffer of 5000 bytes"), std::string::npos)
      << failure;
}

TEST_P(DeviceAttachmentsTest, LandedMemoryIsReusedOnceItsStreamIsDone) {
  std::vector<TestMemory> sent = one(5000);
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  const void* first = inbox(1).buffer(0, 0).data;
  bool done = false;
  inbox(1).messages[0]->attachments()[0].use_on(busy_stream(1, done));
  inbox(1).messages.clear();
  EXPECT_TRUE(outcome(send(1, sent)).ok());
  expect_arrival(1);
  EXPECT_NE(inbox(1).buffer(0, 0).data, first) << "a kernel still uses it";
  done = true;
  turns(100);
  std::vector<TestMemory> similar = one(5001);
  EXPECT_TRUE(outcome(send(1, similar)).ok());
  expect_arrival(1, 2);
  EXPECT_EQ(inbox(1).buffer(1, 0).data, first);
}

}  // namespace
}  // namespace weft::runtime
