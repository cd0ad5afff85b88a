// Sends that fail before anything has left, on the tagged path: their receives end with the reason, whenever
// they are posted, and the messages around them are not touched. device_messages_test.cpp
// has the other paths.
#include "models/channel/failed_sends.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "machine/loopback/loopback_machine.h"
#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using machine::StagingMode;
using memory::Place;
using testing::TestMemory;

struct FailedSendsTest : ChannelPair, ::testing::TestWithParam<std::tuple<std::string, int, StagingMode>> {
  FailedSendsTest()
      : ChannelPair(std::get<int>(GetParam()), std::get<std::string>(GetParam()),
                    std::get<StagingMode>(GetParam())) {}

  // Of the node's PE.
  memory::Memory& memory_of(std::size_t node) { return job.memory(static_cast<int>(node) % job.num_pes()); }
  TestMemory make(std::size_t node, Place place, std::size_t size_bytes, std::uint8_t first) {
    return TestMemory(memory_of(node), place, size_bytes, first);
  }
  // The n-th copy that the node's devices are asked for from now on fails.
  void fail_copy(std::size_t node, std::uint64_t number) {
    memory::EmulatedFaults faults;
    faults.fail_copy = number;
    testing::emulated(memory_of(node)).set_faults(faults);
  }
  static void expect_told(const Outcome& received, const std::string& why) {
    EXPECT_EQ(received.status.code(), StatusCode::kPeerFailed);
    const std::string message(received.status.message());
    for (const std::string& part : {std::string("Node[1] - "), std::string("PE 0 could not send it"), why}) {
      EXPECT_NE(message.find(part), std::string::npos) << message;
    }
  }
};

TEST_P(FailedSendsTest, TheReceiveEndsPostedAlreadyOrLater) {
  connect();
  for (const Place place : {kDevice, Place()}) {
    for (const bool is_posted : {true, false}) {
      SCOPED_TRACE(std::string(place.is_host() ? "host" : "device") + (is_posted ? ", posted" : ", later"));
      TestMemory out = make(0, kDevice, 5000, 3);
      TestMemory in = make(1, place, 5000, 100);
      OutcomePtr received;
      if (is_posted) received = receive(1, in.buffer());
      fail_copy(0, 1);
      const OutcomePtr sent = send(0, out.buffer());
      settle();
      EXPECT_TRUE(sent->done && sent->status.failed());
      if (!is_posted) received = receive(1, in.buffer());
      finish({received});
      expect_told(*received, "as the fault injection says");
      EXPECT_EQ(in.now(), in.filled());
      finish({receive(1, in.buffer()), send(0, out.buffer())});
      EXPECT_EQ(in.now(), out.filled());
    }
  }
}

TEST_P(FailedSendsTest, OthersInFlightArriveWhileCountersWrap) {
  constexpr std::size_t kCount = 6;
  connect(0xffff'fffd);
  for (std::size_t failing = 0; failing < kCount; ++failing) {
    SCOPED_TRACE(failing);
    std::vector<TestMemory> out;
    std::vector<TestMemory> in;
    std::vector<OutcomePtr> received;
    std::vector<OutcomePtr> sent;
    for (std::size_t i = 0; i < kCount; ++i) {
      out.push_back(make(0, kDevice, 1000 * i + 8, static_cast<std::uint8_t>(i)));
      in.push_back(make(1, i % 3 == 0 ? Place() : kDevice, 1000 * i + 8, 200));
    }
    const auto post = [&](std::size_t i) { received.push_back(receive(1, in[i].buffer())); };
    for (std::size_t i = 0; i < kCount / 2; ++i) post(i);
    fail_copy(0, failing + 1);
    for (TestMemory& one : out) sent.push_back(send(0, one.buffer()));
    settle();
    for (std::size_t i = kCount / 2; i < kCount; ++i) post(i);
    finish(received);
    finish(sent);
    for (std::size_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(sent[i]->status.failed(), i == failing) << i;
      EXPECT_EQ(received[i]->status.failed(), i == failing) << i;
      EXPECT_EQ(in[i].now(), i == failing ? in[i].filled() : out[i].filled()) << i;
    }
    expect_told(*received[failing], "as the fault injection says");
  }
}

TEST_P(FailedSendsTest, AReceiveOfNothingIsToldToo) {
  connect();
  TestMemory out = make(0, kDevice, 100, 3);
  const OutcomePtr received = receive(1, {});
  fail_copy(0, 1);
  finish({received, send(0, out.buffer())});
  expect_told(*received, "a receive of 0 bytes");
  const OutcomePtr next = receive(1, {});
  finish({next, send(0, {})});
  EXPECT_TRUE(next->status.ok());
}

TEST_P(FailedSendsTest, WhatNobodyReceivesEndsWithTheJob) {
  connect();
  TestMemory out = make(0, kDevice, 100, 3);
  fail_copy(0, 1);
  const OutcomePtr sent = send(0, out.buffer());
  settle();
  EXPECT_TRUE(sent->done && sent->status.failed());
  EXPECT_EQ(job.runtime(job.num_pes() - 1).failure(), "");
}

TEST_P(FailedSendsTest, AnEndThatIsNotThePeersEndsTheJob) {
  connect();
  const int pe = job.num_pes() - 1;
  // to_end, from_end, counter, why.
  job.runtime(0).send(
      pe, runtime::Message::pack(job.runtime(0), job.runtime(0).model<Channels>().handler(kFailedSend),
                                 std::uint32_t{1}, std::uint32_t{77}, std::uint32_t{0}, std::string("bad")));
  const std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("these ends are not connected"), std::string::npos) << failure;
}

INSTANTIATE_TEST_SUITE_P(Machines, FailedSendsTest,
                         ::testing::Values(std::tuple{"loopback", 2, StagingMode::kDevice},
                                           std::tuple{"ucx", 2, StagingMode::kDevice},
                                           std::tuple{"loopback", 2, StagingMode::kHost},
                                           std::tuple{"ucx", 2, StagingMode::kHost},
                                           std::tuple{"loopback", 1, StagingMode::kHost},
                                           std::tuple{"ucx", 1, StagingMode::kHost}),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) +
                                  "_pe" + (std::get<2>(info.param) == StagingMode::kHost ? "_staged" : "");
                         });

// What the machine itself does not take, of any memory and size; only the loopback machine refuses on demand.
struct RefusedSends : ChannelPair, ::testing::TestWithParam<int> {
  RefusedSends() : ChannelPair(GetParam(), "loopback", StagingMode::kHost) {}
};

TEST_P(RefusedSends, EndTheirReceives) {
  connect();
  auto& machine = dynamic_cast<machine::loopback::LoopbackMachine&>(job.runtime(0).machine());
  for (const Place place : {Place(), kDevice}) {
    for (const std::size_t size_bytes : {std::size_t{0}, std::size_t{8}, std::size_t{100'000}}) {
      for (const bool is_posted : {true, false}) {
        SCOPED_TRACE(std::to_string(size_bytes) + (place.is_host() ? " of host" : " of device") +
                     (is_posted ? ", posted" : ", later"));
        TestMemory out(job.memory(0), place, size_bytes, 3);
        TestMemory in(job.memory(job.num_pes() - 1), place, size_bytes, 100);
        OutcomePtr received;
        if (is_posted) received = receive(1, in.buffer());
        machine.refuse_tag_sends(1);
        const OutcomePtr sent = send(0, out.buffer());
        settle();
        EXPECT_TRUE(sent->done && sent->status.failed());
        if (!is_posted) received = receive(1, in.buffer());
        finish({received});
        EXPECT_EQ(received->status.code(), StatusCode::kPeerFailed);
        EXPECT_NE(received->status.message().find("PE 0 could not send it: PE 0 refuses"), std::string::npos)
            << received->status.message();
        EXPECT_EQ(in.now(), in.filled());
        finish({receive(1, in.buffer()), send(0, out.buffer())});
        EXPECT_EQ(in.now(), out.filled());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Pes, RefusedSends, ::testing::Values(1, 2), ::testing::PrintToStringParamName());

}  // namespace
}  // namespace weft::channel
