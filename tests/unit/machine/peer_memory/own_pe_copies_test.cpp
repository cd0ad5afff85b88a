// Messages of device memory within a PE: which of them the device copies, and that the others take their tag.
#include "machine/peer_memory/own_pe_copies.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/busy_stream.h"
#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::Status;
using base::StatusCode;
using memory::Place;
using testing::TestMemory;

constexpr std::size_t kCopyBytes = 5000;

struct OwnPeCopiesTest : PeerPair, ::testing::TestWithParam<std::string> {
  OwnPeCopiesTest() : PeerPair(1, GetParam()) {}

  OutcomePtr send(std::size_t from, TestMemory& buffer) { return PeerPair::send(from, buffer.buffer()); }
  OutcomePtr receive(std::size_t at, TestMemory& buffer) { return PeerPair::receive(at, buffer.buffer()); }
  TestMemory make(Place place, std::uint8_t first, std::size_t size_bytes = kCopyBytes) {
    return TestMemory(memory(0), place, size_bytes, first);
  }
  std::uint32_t num_held() const { return incoming[0].held_sends + incoming[1].held_sends; }
  // The transport's sends of device memory to its own PE are staged here, so these are copies by the device.
  std::uint64_t num_copied() { return count(0, TransferPath::kOwnPe); }
};

TEST_P(OwnPeCopiesTest, WhicheverSideComesFirst) {
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
  EXPECT_EQ(num_copied(), 2u);
  EXPECT_EQ(count(0, TransferPath::kStaged), 0u);
}

TEST_P(OwnPeCopiesTest, OrderIsKeptWhileCountersWrap) {
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

// Such a receive has its tag only.
TEST_P(OwnPeCopiesTest, AReceiveFromBeforeThePeerWasKnownTakesItsTag) {
  connect();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  incoming[1].peer = -1;
  const OutcomePtr received = receive(1, in);
  incoming[1].peer = 0;
  finish({send(0, out), received});
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_EQ(num_copied(), 0u);
}

// One end knows its peer before the other does.
TEST_P(OwnPeCopiesTest, AnEndThatDoesNotKnowItsPeerFindsTheHeldSend) {
  connect();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  incoming[1].peer = -1;
  const OutcomePtr sent = send(0, out);
  finish({receive(1, in), sent});
  EXPECT_EQ(in.now(), out.filled());
}

TEST_P(OwnPeCopiesTest, OtherSizesTakeTheirTagAndTheStreamGoesOn) {
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
    TestMemory next_out = make(kDevice, 7);
    TestMemory next_in = make(kDevice, 100);
    finish({receive(1, next_in), send(0, next_out)});
    EXPECT_EQ(next_in.now(), next_out.filled());
  }
}

// Of both sides, whichever comes first; and only what was queued before the operation was started.
TEST_P(OwnPeCopiesTest, StreamsComeFirst) {
  connect();
  auto& kind = testing::emulated(memory(0));
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
  EXPECT_EQ(num_copied(), 2u);
}

TEST_P(OwnPeCopiesTest, TurnedOffEverythingTakesItsTag) {
  connect();
  peer_memory(0).turn_off();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  const OutcomePtr sent = send(0, out);
  EXPECT_EQ(num_held(), 0u);
  finish({receive(1, in), sent});
  EXPECT_EQ(in.now(), out.filled());
}

TEST_P(OwnPeCopiesTest, AFailedCopyEndsBothOperations) {
  connect();
  for (const bool sends_first : {true, false}) {
    TestMemory out = make(kDevice, 3);
    TestMemory in = make(kDevice, 100);
    memory::EmulatedFaults faults;
    faults.fail_copy = 1;
    testing::emulated(memory(0)).set_faults(faults);
    OutcomePtr sent;
    if (sends_first) sent = send(0, out);
    const OutcomePtr received = receive(1, in);
    if (!sends_first) sent = send(0, out);
    finish({sent, received});
    EXPECT_NE(sent->status.message().find("as the fault injection says"), std::string::npos);
    EXPECT_EQ(received->size_bytes, 0u) << "ended by the empty message";
    TestMemory again = make(kDevice, 100);
    finish({receive(1, again), send(0, out)});
    EXPECT_EQ(again.now(), out.filled());
  }
}

// Whose stream it is, and which side comes first.
TEST_P(OwnPeCopiesTest, AStreamThatFailedEndsBothOperations) {
  connect();
  auto& kind = testing::emulated(memory(0));
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
      EXPECT_NE(sent->status.message().find("bad work"), std::string::npos) << sent->status.to_string();
      if (is_senders) {
        EXPECT_EQ(received->size_bytes, 0u) << "ended by the empty message";
      } else {
        EXPECT_NE(received->status.message().find("bad work"), std::string::npos);
        EXPECT_EQ(sent->status.code(), StatusCode::kPeerFailed);
      }
      EXPECT_EQ(in.now(), in.filled());
      TestMemory next_out = make(kDevice, 30);
      TestMemory next_in = make(kDevice, 100);
      finish({receive(1, next_in), send(0, next_out)});
      EXPECT_EQ(next_in.now(), next_out.filled());
    }
  }
  EXPECT_TRUE(kind.destroy_stream(stream).ok());
}

TEST_P(OwnPeCopiesTest, WhatNothingTakesEndsWithTheMachine) {
  connect();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  const OutcomePtr sent = send(0, out);
  const OutcomePtr received = receive(0, in);
  settle();
  EXPECT_FALSE(sent->done || received->done);
  close();
  EXPECT_EQ(sent->status.code(), StatusCode::kClosed);
  EXPECT_TRUE(received->status.failed());
}

TEST_P(OwnPeCopiesTest, ACopyUnderWayEndsBeforeTheMachineIsClosed) {
  connect();
  TestMemory out = make(kDevice, 3);
  TestMemory in = make(kDevice, 100);
  const OutcomePtr received = receive(1, in);
  const OutcomePtr sent = send(0, out);
  EXPECT_FALSE(sent->done || received->done);
  close();
  EXPECT_TRUE(sent->status.ok() && received->status.ok());
  EXPECT_EQ(in.now(), out.filled());
}

TEST_P(OwnPeCopiesTest, AReceiveCanBeCancelled) {
  connect();
  TestMemory in = make(kDevice, 100);
  const OutcomePtr received = receive(1, in);
  machine(0).cancel(received.get());
  finish({received});
  EXPECT_EQ(received->status.code(), StatusCode::kCancelled);
}

INSTANTIATE_TEST_SUITE_P(Machines, OwnPeCopiesTest, ::testing::Values("ucx", "loopback"),
                         [](const auto& machine) { return machine.param; });

}  // namespace
}  // namespace weft::machine
