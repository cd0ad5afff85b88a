// The direct path: what goes by it and what by its tag, order, streams, failure, sleep and close.
#include "models/channel/direct_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/busy_stream.h"
#include "tests/unit/channel/direct_path_pair.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using machine::TransferType;
using memory::Buffer;
using memory::ConstBuffer;
using memory::Kind;
using memory::Place;
using testing::InProcessJob;
using testing::TestMemory;

TEST_P(DirectPathTest, WhatIsPostedIsCopied) {
  start();
  const std::uint64_t before = copies(0);
  for (const std::size_t size_bytes : {1, 8, 4097, 1'000'000}) exchange(0, size_bytes);
  EXPECT_EQ(copies(0), before + 4);
}

TEST_P(DirectPathTest, WhatIsNotPostedTakesItsTagAndOrderIsKept) {
  start();
  const std::uint64_t before = copies(0);
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  for (std::uint8_t i = 0; i < 4; ++i) {
    out.emplace_back(job.memory(0), kDevice, 5000, static_cast<std::uint8_t>(50 * i + 1));
    in.push_back(used(1, 5000));
  }
  std::vector<OutcomePtr> all;
  all.push_back(receive(1, in[0].buffer()));
  all.push_back(receive(1, in[1].buffer()));
  for (TestMemory& one : out) all.push_back(send(0, one.buffer()));
  all.push_back(receive(1, in[2].buffer()));
  all.push_back(receive(1, in[3].buffer()));
  turn([&] { return std::ranges::all_of(all, [](const auto& outcome) { return outcome->done; }); });
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(in[i].now(), out[i].filled()) << i;
  EXPECT_EQ(copies(0), before + 2);
}

TEST_P(DirectPathTest, PartsOfAllocationsLandWhereTheyBelong) {
  start();
  const std::uint64_t before = copies(0);
  TestMemory out(job.memory(0), kDevice, 3000, 1);
  TestMemory in = used(1, 2000, 100);
  const Buffer from{static_cast<std::byte*>(out.buffer().data) + 1234, 500, kDevice, nullptr};
  const Buffer to{static_cast<std::byte*>(in.buffer().data) + 77, 500, kDevice, nullptr};
  const OutcomePtr received = receive(1, to);
  finish({received, send(0, from)});
  auto expected = in.filled();
  std::copy_n(out.filled().begin() + 1234, 500, expected.begin() + 77);
  EXPECT_EQ(in.now(), expected);
  EXPECT_EQ(received->size_bytes, 500u);
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(DirectPathTest, StreamsComeFirst) {
  start();
  const std::uint64_t before = copies(0);
  TestMemory out(job.memory(0), kDevice, 64, 1);
  TestMemory in = used(1, 64, 100);
  bool may_receive = false;
  bool may_send = false;
  const auto behind = [&](int pe, const bool& may_go, const Buffer& buffer) {
    return testing::behind(testing::emulated(job.memory(pe)), testing::until(may_go), buffer);
  };
  in.buffer() = behind(1, may_receive, in.buffer());
  out.buffer() = behind(0, may_send, out.buffer());
  const OutcomePtr received = receive(1, in.buffer());
  settle();
  may_receive = true;
  settle();  // now it is posted
  const OutcomePtr sent = send(0, out.buffer());
  settle();
  EXPECT_EQ(in.now(), in.filled());
  EXPECT_FALSE(received->done || sent->done);
  may_send = true;
  finish({received, sent});
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(DirectPathTest, ASendThatWaitsForItsStreamLooksAgain) {
  start();
  for (const bool is_posted : {true, false}) {
    const std::uint64_t before = copies(0);
    TestMemory out(job.memory(0), kDevice, 64, 1);
    TestMemory in = used(1, 64, 100);
    bool may_send = false;
    auto& kind = testing::emulated(job.memory(0));
    out.buffer() = testing::behind(kind, testing::until(may_send), out.buffer());
    const OutcomePtr sent = send(0, out.buffer());
    OutcomePtr received;
    if (is_posted) received = receive(1, in.buffer());
    settle();
    may_send = true;
    settle();
    if (!is_posted) received = receive(1, in.buffer());
    finish({received, sent});
    EXPECT_EQ(in.now(), out.filled());
    EXPECT_EQ(copies(0), before + (is_posted ? 1 : 0));
  }
}

TEST_P(DirectPathTest, ASendThatWaitsForItsStreamEndsWithTheJob) {
  start();
  TestMemory out(job.memory(0), kDevice, 64, 1);
  bool may_send = false;
  out.buffer() = testing::behind(testing::emulated(job.memory(0)), testing::until(may_send), out.buffer());
  auto* sending = std::move(channels[0].send(ConstBuffer(out.buffer()))).release();
  settle();
  EXPECT_FALSE(sending->is_done());
  job.runtime(0).close();
  EXPECT_EQ(sending->status().code(), StatusCode::kClosed);
  sending->drop_handle();
  may_send = true;
}

TEST_P(DirectPathTest, OtherSizesAreToldOf) {
  start();
  TestMemory out(job.memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 60, 100);
  const OutcomePtr received = receive(1, in.buffer());
  finish({received, send(0, out.buffer())});
  EXPECT_EQ(received->status.code(), StatusCode::kTruncated);
  EXPECT_NE(received->status.message().find("Node[1] - "), std::string::npos);
  EXPECT_EQ(in.now(), in.filled());
  exchange(0, 100);  // the channel goes on
}

TEST_P(DirectPathTest, HostMemoryOnEitherSideTakesItsTag) {
  start();
  const std::uint64_t before = copies(0);
  for (const auto& [from, to] : {std::pair{Place(), kDevice}, std::pair{kDevice, Place()}}) {
    TestMemory out(job.memory(0), from, 9000, 1);
    TestMemory in = to.is_host() ? TestMemory(job.memory(1), to, 9000) : used(1, 9000);
    const OutcomePtr received = receive(1, in.buffer());
    finish({received, send(0, out.buffer())});
    EXPECT_EQ(in.now(), out.filled());
  }
  exchange(0, 10);
  EXPECT_EQ(copies(0), before + 1);
}

TEST_P(DirectPathTest, TurnedOffAndStagedNothingIsCopied) {
  path(0).turn_off();
  path(1).turn_off();
  start();
  exchange(0, 100);
  exchange(1, 100);
  EXPECT_EQ(copies(0) + copies(1), 0u);
}

TEST_P(DirectPathTest, MemoryThatIsUsedOnceIsNotMapped) {
  start();
  const std::uint64_t before = copies(0);
  for (int i = 0; i < 5; ++i) static_cast<void>(used(1, 100));
  EXPECT_EQ(copies(0), before);
}

TEST_P(DirectPathTest, FreedBuffersAreMappedAnew) {
  start();
  const std::uint64_t before = copies(0);
  for (int i = 0; i < 50; ++i) exchange(0, 5000);
  EXPECT_EQ(copies(0), before + 50);
}

TEST_P(DirectPathTest, AFailedCopyEndsBothOperations) {
  start();
  TestMemory out(job.memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100, 100);
  const OutcomePtr received = receive(1, in.buffer());
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  testing::emulated(job.memory(0)).set_faults(faults);
  const OutcomePtr sent = send(0, out.buffer());
  finish({received, sent});
  EXPECT_TRUE(sent->status.failed());
  EXPECT_EQ(received->status.code(), StatusCode::kPeerFailed);
  const std::string message(received->status.message());
  EXPECT_NE(message.find("Node[1] - "), std::string::npos) << message;
  EXPECT_NE(message.find("PE 0 could not send it"), std::string::npos) << message;
  EXPECT_NE(message.find("as the fault injection says"), std::string::npos) << message;
  exchange(0, 100);
}

TEST_P(DirectPathTest, AStreamThatFailedEndsBothOperations) {
  start();
  auto& kind = testing::emulated(job.memory(0));
  for (const bool is_posted : {true, false}) {
    TestMemory out(job.memory(0), kDevice, 100, 1);
    TestMemory in = used(1, 100, 100);
    out.buffer().stream = kind.create_stream(0).value();
    OutcomePtr received;
    if (is_posted) received = receive(1, in.buffer());
    ASSERT_TRUE(
        kind.launch(out.buffer().stream, 0, [] { return Status(StatusCode::kInternal, "bad work"); }).ok());
    const OutcomePtr sent = send(0, out.buffer());
    settle();
    if (!is_posted) received = receive(1, in.buffer());
    finish({received, sent});
    EXPECT_TRUE(sent->status.failed());
    EXPECT_EQ(received->status.code(), StatusCode::kPeerFailed);
    EXPECT_NE(received->status.message().find("bad work"), std::string::npos) << received->status.message();
    EXPECT_EQ(in.now(), in.filled());
    exchange(0, 100);
    EXPECT_TRUE(kind.destroy_stream(out.buffer().stream).ok());
  }
}

TEST_P(DirectPathTest, ASleepingReceiverIsWoken) {
  start();
  TestMemory out(job.memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100, 100);
  const OutcomePtr received = receive(1, in.buffer());
  EXPECT_TRUE(path(1).before_sleep());
  const std::uint64_t before = count(0, TransferType::kAmSend);
  const OutcomePtr sent = send(0, out.buffer());
  while (!sent->done) job.runtime(0).step();
  EXPECT_EQ(count(0, TransferType::kAmSend), before + 1);
  EXPECT_FALSE(path(1).before_sleep()) << "the bytes are there";
  finish({received, sent});
}

TEST_P(DirectPathTest, AReceiverThatIsAwakeIsNot) {
  start();
  const std::uint64_t before = count(0, TransferType::kAmSend);
  TestMemory out(job.memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100, 100);
  const OutcomePtr received = receive(1, in.buffer());
  finish({received, send(0, out.buffer())});
  EXPECT_EQ(count(0, TransferType::kAmSend), before);
}

TEST_P(DirectPathTest, ReceivesThatNobodyServesEndWithTheJob) {
  start();
  TestMemory in = used(1, 100, 100);
  const std::uint64_t before = job.runtime(1).processed();
  channels[1].recv(in.buffer()).detach();
  job.runtime(1).close();
  EXPECT_EQ(job.runtime(1).processed(), before + 1) << "it counts when it ends";
  // Its offer was taken back: nothing is written any more.
  TestMemory out(job.memory(0), kDevice, 100, 1);
  const std::uint64_t copied = copies(0);
  channels[0].send(ConstBuffer(out.buffer())).detach();
  EXPECT_EQ(copies(0), copied);
  EXPECT_EQ(in.now(), in.filled());
  job.runtime(0).close();
}

// Whatever comes first, from and to whatever memory, more in flight than there are slots, counters wrapping.
TEST_P(DirectPathTest, ManyMessagesOfEachKindKeepTheirOrder) {
  start(0xffffffc0u);
  constexpr std::size_t kMessages = 600;
  constexpr std::size_t kMaxBytes = 6000;
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<std::size_t> sizes;
    for (std::size_t i = 0; i < kMessages; ++i) sizes.push_back(1 + random() % kMaxBytes);
    // Of each kind of memory one allocation, whose parts the messages use.
    struct Side {
      TestMemory host;
      TestMemory device;
      std::vector<Buffer> buffers;
      std::vector<OutcomePtr> outcomes;
    };
    const auto make_side = [&](int pe, std::uint8_t first) {
      return Side{TestMemory(job.memory(pe), {}, kMessages * kMaxBytes, first),
                  TestMemory(job.memory(pe), kDevice, kMessages * kMaxBytes, first),
                  {},
                  {}};
    };
    std::array<Side, 2> sides{make_side(0, static_cast<std::uint8_t>(seed)), make_side(1, 0)};
    const auto begin = [&](int pe) {
      Side& side = sides[at(pe)];
      const std::size_t i = side.buffers.size();
      if (i == kMessages) return;
      Buffer part = (random() % 4 == 0 ? side.host : side.device).buffer();
      part.data = static_cast<std::byte*>(part.data) + i * kMaxBytes;
      part.size_bytes = sizes[i];
      side.buffers.push_back(part);
      side.outcomes.push_back(pe == 0 ? send(0, part) : receive(1, part));
    };
    const auto is_over = [](const Side& side) {
      return side.outcomes.size() == kMessages &&
             std::ranges::all_of(side.outcomes, [](const OutcomePtr& outcome) { return outcome->done; });
    };
    while (!is_over(sides[0]) || !is_over(sides[1])) {
      for (const int pe : {1, 0}) {
        for (int starts = static_cast<int>(random() % 90); starts > 0; --starts) begin(pe);
      }
      for (int steps = static_cast<int>(random() % 8); steps > 0; --steps) step();
      ASSERT_EQ(job.runtime(0).failure() + job.runtime(1).failure(), "");
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
      const Status& status = sides[1].outcomes[i]->status;
      ASSERT_TRUE(status.ok()) << status.to_string();
      ASSERT_EQ(testing::contents(job.memory(1), sides[1].buffers[i]),
                testing::contents(job.memory(0), sides[0].buffers[i]))
          << i;
    }
  }
  EXPECT_GT(copies(0), 100u);
  EXPECT_GT(count(0, TransferType::kTagSend), 100u);
}

INSTANTIATE_TEST_SUITE_P(Machines, DirectPathTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

// Counters wrap, so an outcome may be there from four billion messages ago.
TEST_P(DirectPathTest, AnOldOutcomeIsNotTakenForThisMessages) {
  start();
  TestMemory out(job.memory(0), kDevice, 100, 1);
  TestMemory in = used(1, 100, 100);
  const ChannelEnd& end = *job.runtime(1).model<Channels>().find(1);
  end.direct.inbox->slot(end.next_receive).outcome.store(Slot::done(end.next_receive));
  const OutcomePtr received = receive(1, in.buffer());
  settle();
  EXPECT_FALSE(received->done);
  finish({received, send(0, out.buffer())});
  EXPECT_EQ(in.now(), out.filled());
}

// --- where it does not apply

TEST(DirectPathApart, PesOfOtherHostsTakeTheTaggedPath) {
  InProcessJob job(2, "ucx-apart");
  EXPECT_FALSE(job.runtime(0).machine().may_pass_by(1));
  InProcessJob together(2, "ucx");
  EXPECT_TRUE(together.runtime(0).machine().may_pass_by(1));
  EXPECT_TRUE(together.runtime(0).machine().may_pass_by(0));
}

}  // namespace
}  // namespace weft::channel
