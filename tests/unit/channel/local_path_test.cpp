// Channels between two chares of one PE whose buffers are device memory: which messages the device copies,
// and that those which cannot be copied so take their tag.
#include "models/channel/local_path.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/busy_stream.h"
#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using machine::TransferPath;
using memory::Place;
using testing::TestMemory;

constexpr std::size_t kSize = 5000;

struct LocalPathTest : ChannelPairTest {
  LocalPathTest() : ChannelPairTest(1) {}

  OutcomePtr send(std::size_t from, TestMemory& buffer) {
    return ChannelPairTest::send(from, buffer.buffer());
  }
  OutcomePtr receive(std::size_t at, TestMemory& buffer) {
    return ChannelPairTest::receive(at, buffer.buffer());
  }
  TestMemory make(Place place, std::uint8_t first, std::size_t size_bytes = kSize) {
    return TestMemory(job.memory(0), place, size_bytes, first);
  }

  std::size_t num_held() {
    std::size_t held = 0;
    for (std::uint32_t number : {1u, 2u}) {
      held += job.runtime(0).model<Channels>().find(number)->local.held_sends.size();
    }
    return held;
  }
  // Whether an end was told of a send whose receive is over all the same.
  bool is_told_twice() {
    auto& channels_of_pe = job.runtime(0).model<Channels>();
    bool is_told = false;
    for (std::uint32_t counter = 0; counter < 20; ++counter) {
      for (const std::uint32_t number : {1u, 2u}) {
        is_told |= !channels_of_pe.failed_sends().take_reason(*channels_of_pe.find(number), counter).empty();
      }
    }
    return is_told;
  }
  // What the machine carried, and the device copied in its place, is counted in the same row.
  std::uint64_t bytes(TransferPath path) {
    std::uint64_t sum = 0;
    for (const auto& use : job.runtime(0).machine().transport_use()) {
      if (use.path == path && use.kind == kDevice.kind) sum += use.bytes;
    }
    return sum;
  }
};

TEST_P(LocalPathTest, WhicheverSideComesFirst) {
  connect();
  for (const bool sends_first : {false, true}) {
    TestMemory out = make(kDevice, 3);
    TestMemory in = make(kDevice, 100);
    OutcomePtr sent;
    if (sends_first) {
      sent = send(0, out);
      settle();
      EXPECT_FALSE(sent->done);
      EXPECT_EQ(num_held(), 1u);
    }
    const OutcomePtr received = receive(1, in);
    if (!sends_first) {
      settle();
      EXPECT_FALSE(received->done);
      sent = send(0, out);
    }
    finish({sent, received});
    EXPECT_TRUE(sent->status.ok() && received->status.ok());
    EXPECT_EQ(in.now(), out.filled());
    EXPECT_EQ(num_held(), 0u);
  }
  EXPECT_EQ(bytes(TransferPath::kOwnPe), 2 * kSize);
  EXPECT_EQ(bytes(TransferPath::kStaged), 0u);
}

TEST_P(LocalPathTest, OrderIsKeptWhileCountersWrap) {
  connect(0xffff'fffd);
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  for (int i = 0; i < 8; ++i) {
    out.push_back(make(i % 3 == 1 ? Place() : kDevice, static_cast<std::uint8_t>(20 * i + 1)));
    in.push_back(make(i % 4 == 2 ? Place() : kDevice, 255));
  }
  std::vector<OutcomePtr> all;
  const auto send_some = [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) all.push_back(send(0, out[i]));
  };
  const auto receive_some = [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) all.push_back(receive(1, in[i]));
  };
  receive_some(0, 3);
  send_some(0, 5);
  settle();
  receive_some(3, 6);
  settle();
  send_some(5, 8);
  receive_some(6, 8);
  finish(all);
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(in[i].now(), out[i].filled()) << i;
}

// Such a receive has its tag only, whoever sends.
TEST_P(LocalPathTest, AReceiveFromBeforeThePeerWasKnownTakesItsTag) {
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  channels[1] = Node::all[1]->to_the_other();
  const OutcomePtr received = receive(1, in);
  channels[0] = Node::all[0]->to_the_other();
  finish({send(0, out), received});
  EXPECT_EQ(in.now(), out.filled());
}

// One end knows its peer at once, the other only when the announcement has come.
TEST_P(LocalPathTest, ASendToAnEndThatDoesNotKnowItsPeerTakesItsTag) {
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  channels[1] = Node::all[1]->to_the_other();
  settle();
  channels[0] = Node::all[0]->to_the_other();
  const OutcomePtr sent = send(0, out);
  finish({receive(1, in), sent});
  EXPECT_EQ(in.now(), out.filled());
}

TEST_P(LocalPathTest, OtherSizesAreToldOfAndTheChannelGoesOn) {
  connect();
  for (const bool sends_first : {false, true}) {
    TestMemory out = make(kDevice, 3, 100);
    TestMemory in = make(kDevice, 100, 60);
    OutcomePtr sent;
    if (sends_first) sent = send(0, out);
    const OutcomePtr received = receive(1, in);
    if (!sends_first) sent = send(0, out);
    finish({received});
    EXPECT_EQ(received->status.code(), StatusCode::kTruncated);
    EXPECT_NE(received->status.message().find("Node[1] - "), std::string::npos) << received->status.message();
    TestMemory next_out = make(kDevice, 7);
    TestMemory next_in = make(kDevice, 100);
    finish({receive(1, next_in), send(0, next_out)});
    EXPECT_EQ(next_in.now(), next_out.filled());
  }
}

// Of both sides, whichever comes first; and only what was queued before the operation was started.
TEST_P(LocalPathTest, StreamsComeFirst) {
  connect();
  auto& kind = testing::emulated(job.memory(0));
  for (const bool sends_first : {false, true}) {
    TestMemory out = make(kDevice, 3);
    TestMemory in = make(kDevice, 100);
    std::array<bool, 2> may_go{};
    std::array<memory::StreamHandle, 2> streams{};
    for (std::size_t i = 0; i < 2; ++i) {
      streams[i] = testing::stream_with(kind, 0, testing::until(may_go[i]));
    }
    out.buffer().stream = streams[0];
    in.buffer().stream = streams[1];
    OutcomePtr sent;
    if (sends_first) sent = send(0, out);
    const OutcomePtr received = receive(1, in);
    if (!sends_first) sent = send(0, out);
    bool may_end = false;
    for (const memory::StreamHandle stream : streams) {
      const auto wait = [&may_end] { return may_end ? Status() : Status::pending(); };
      ASSERT_TRUE(kind.launch(stream, 0, wait).ok());
    }
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
      settle();
      EXPECT_FALSE(received->done || sent->done);
      EXPECT_EQ(in.now(), in.filled());
      may_go[sends_first ? first : 1 - first] = true;
    }
    finish({sent, received});
    EXPECT_EQ(in.now(), out.filled());
    may_end = true;
    settle();
    for (const memory::StreamHandle stream : streams) EXPECT_TRUE(kind.destroy_stream(stream).ok());
  }
  EXPECT_EQ(bytes(TransferPath::kOwnPe), 2 * kSize);
}

TEST_P(LocalPathTest, TurnedOffEverythingTakesItsTag) {
  connect();
  job.runtime(0).model<Channels>().local_path().turn_off();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  const OutcomePtr sent = send(0, out);
  EXPECT_EQ(num_held(), 0u);
  finish({receive(1, in), sent});
  EXPECT_EQ(in.now(), out.filled());
}

TEST_P(LocalPathTest, AFailedCopyEndsBothOperations) {
  connect();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  testing::emulated(job.memory(0)).set_faults(faults);
  const OutcomePtr received = receive(1, in);
  const OutcomePtr sent = send(0, out);
  finish({sent, received});
  EXPECT_TRUE(sent->status.failed());
  EXPECT_TRUE(received->status.failed());
  EXPECT_NE(received->status.message().find("Node[1] - "), std::string::npos);
  TestMemory again = make(kDevice, 100);
  finish({receive(1, again), send(0, out)});
  EXPECT_EQ(again.now(), out.filled());
  EXPECT_FALSE(is_told_twice());
}

// Whose stream it is, and which side comes first.
TEST_P(LocalPathTest, AStreamThatFailedEndsBothOperations) {
  connect();
  auto& kind = testing::emulated(job.memory(0));
  const memory::StreamHandle stream = kind.create_stream(0).value();
  for (const bool is_senders : {true, false}) {
    for (const bool sends_first : {true, false}) {
      SCOPED_TRACE(std::string(is_senders ? "sender's" : "receiver's") + (sends_first ? ", send first" : ""));
      TestMemory out = make(kDevice, 3);
      TestMemory in = make(kDevice, 100);
      (is_senders ? out : in).buffer().stream = stream;
      bool may_go = false;
      const auto fail = [&] {
        return may_go ? Status(StatusCode::kInternal, "bad work") : Status::pending();
      };
      ASSERT_TRUE(kind.launch(stream, 0, fail).ok());
      OutcomePtr sent;
      if (sends_first) sent = send(0, out);
      const OutcomePtr received = receive(1, in);
      if (!sends_first) sent = send(0, out);
      settle();
      may_go = true;
      finish({sent, received});
      EXPECT_TRUE(sent->status.failed() && received->status.failed());
      EXPECT_NE(received->status.message().find("bad work"), std::string::npos) << received->status.message();
      EXPECT_EQ(in.now(), in.filled());
      TestMemory next_out = make(kDevice, 30);
      TestMemory next_in = make(kDevice, 100);
      finish({receive(1, next_in), send(0, next_out)});
      EXPECT_EQ(next_in.now(), next_out.filled());
    }
  }
  EXPECT_FALSE(is_told_twice());
  EXPECT_TRUE(kind.destroy_stream(stream).ok());
}

TEST_P(LocalPathTest, WhatNobodyTakesEndsWithTheJob) {
  connect();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  auto* sending = std::move(channels[0].send(memory::ConstBuffer(out.buffer()))).release();
  auto* receiving = std::move(channels[0].recv(in.buffer())).release();
  settle();
  EXPECT_FALSE(sending->is_done() || receiving->is_done());
  job.runtime(0).close();
  EXPECT_EQ(sending->status().code(), StatusCode::kClosed);
  EXPECT_TRUE(receiving->status().failed());
  sending->drop_handle();
  receiving->drop_handle();
}

INSTANTIATE_TEST_SUITE_P(Machines, LocalPathTest, ::testing::Values("ucx", "loopback"),
                         [](const auto& machine) { return machine.param; });

}  // namespace
}  // namespace weft::channel
