// Small messages without a block: from memory that both PEs share into the memory of the receive.
#include <gtest/gtest.h>

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "weft/mpi/mpi.h"
#include "weft/runtime/direct_message.h"

#include "models/mpi/p2p/matching/header.h"
#include "tests/unit/mpi/device/device_view.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

constexpr std::uint64_t kDirectContext = 4;

std::vector<char> direct_bytes(std::size_t size, int seed) {
  std::vector<char> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<char>(i * 13 + static_cast<std::size_t>(seed));
  return bytes;
}
DataView direct_view(std::vector<char>& bytes) { return DataView::of_bytes(bytes.data(), bytes.size()); }

// As PointToPoint of PE 0 would send it, with this header.
template <class Header>
bool send_to_pe_1(MpiJob& job, const Header& header, const std::vector<char>& bytes) {
  const auto handler = static_cast<runtime::HandlerId>(job.ranks(0).first_handler() + PointToPoint::kBlock);
  return job.runtime(0).send_direct(1, handler, header, std::as_bytes(std::span(bytes)));
}

TEST(DirectMessages, TheMachineDecidesWhetherThereIsADirectWay) {
  const std::vector<char> small = direct_bytes(8, 1);
  const MessageHeader header{.context = kDirectContext, .to = 1};
  MpiJob shared(2, "ucx");
  EXPECT_TRUE(send_to_pe_1(shared, header, small));
  EXPECT_FALSE(send_to_pe_1(shared, header, direct_bytes(runtime::kMostDirectBytes + 1, 1)));
  MpiJob apart(2, "loopback");
  EXPECT_FALSE(send_to_pe_1(apart, header, small));
}

// The queue has 256 entries, so some go directly and the others in blocks, which must not overtake.
TEST(DirectMessages, WhatDoesNotFitTheQueueComesInOrderToo) {
  MpiJob job(2, "ucx");
  constexpr std::size_t kMessages = 1000;
  std::deque<std::vector<char>> sent;
  std::deque<std::vector<char>> received;
  std::deque<Ref<SendRequest>> sends;
  std::deque<Ref<ReceiveRequest>> receives;
  for (std::size_t i = 0; i < kMessages; ++i) {
    sent.push_back(direct_bytes(i % 201, static_cast<int>(i)));
    received.emplace_back(201);
    if (i % 2 == 0)
      receives.push_back(job.ranks(1).receive({kDirectContext, 0, 5}, direct_view(received[i / 2])));
    sends.push_back(job.ranks(0).send({kDirectContext, 0, 5, 1}, direct_view(sent[i]), SendMode::kStandard));
  }
  for (std::size_t i = kMessages / 2; i < kMessages; ++i) {
    receives.push_back(job.ranks(1).receive({kDirectContext, 0, 5}, direct_view(received[i])));
    if (i % 7 == 0) job.settle();
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    job.wait(sends[i], receives[i]);
    ASSERT_EQ(receives[i]->outcome().size_bytes, static_cast<std::int64_t>(sent[i].size())) << i;
    received[i].resize(sent[i].size());
    ASSERT_EQ(received[i], sent[i]) << i;
  }
}

TEST(DirectMessages, AMessageThatComesEarlyWaitsForItsTurn) {
  MpiJob job(2, "ucx");
  std::vector<char> first = direct_bytes(8, 1);
  std::vector<char> second = direct_bytes(8, 2);
  std::vector<char> received[2] = {std::vector<char>(8), std::vector<char>(8)};
  const auto receive_first = job.ranks(1).receive({kDirectContext, 0, 5}, direct_view(received[0]));
  const auto receive_second = job.ranks(1).receive({kDirectContext, 0, 5}, direct_view(received[1]));
  ASSERT_TRUE(
      send_to_pe_1(job, MessageHeader{.context = kDirectContext, .sequence = 1, .tag = 5, .to = 1}, second));
  job.settle();
  EXPECT_FALSE(receive_first->is_complete());
  ASSERT_TRUE(send_to_pe_1(job, MessageHeader{.context = kDirectContext, .tag = 5, .to = 1}, first));
  job.wait(receive_first, receive_second);
  EXPECT_EQ(received[0], first);
  EXPECT_EQ(received[1], second);
}

TEST(DirectMessages, HostMemoryLandsInDeviceMemory) {
  MpiJob job(2, "ucx");
  testing::TestMemory sent(job.memory(0), kHostPlace, 64, 3);
  testing::TestMemory received(job.memory(1), kDevicePlace, 64, 100);
  const auto receive = job.ranks(1).receive({kDirectContext, 0, 5}, view_of_memory(received));
  const auto send = job.ranks(0).send({kDirectContext, 0, 5, 1}, view_of_memory(sent), SendMode::kStandard);
  job.wait(send, receive);
  EXPECT_EQ(received.now(), sent.filled());
}

// What a peer sends is a claim.
TEST(DirectMessages, AMessageThatCannotBeRightEndsTheJob) {
  struct Wrong {
    const char* what;
    MessageHeader header;
  };
  const Wrong wrong[] = {
      {"a negative tag", {.context = kDirectContext, .tag = -3, .to = 1}},
      {"a negative rank", {.context = kDirectContext, .source = -1, .to = 1}},
      {"unknown flags", {.context = kDirectContext, .to = 1, .flags = 64}},
      {"no number for the answer", {.context = kDirectContext, .to = 1, .flags = kWantsAnswer}},
      {"a number far ahead", {.context = kDirectContext, .sequence = 1U << 30, .to = 1}},
      {"a rank that is elsewhere", {.context = kDirectContext}},
      {"a rank that does not exist", {.context = kDirectContext, .to = 2}},
      {"a sender on another PE", {.context = kDirectContext, .from = 1, .to = 1}},
      {"a sender that does not exist", {.context = kDirectContext, .from = -1, .to = 1}},
  };
  const auto failure_after = [](MpiJob& job) {
    int turns = 0;
    return job.run_until([&] { return ++turns > 100; });
  };
  for (const Wrong& one : wrong) {
    SCOPED_TRACE(one.what);
    MpiJob job(2, "ucx");
    ASSERT_TRUE(send_to_pe_1(job, one.header, direct_bytes(one.header.flags == kWantsAnswer ? 4 : 8, 1)));
    const std::string failure = failure_after(job);
    EXPECT_NE(failure.find("an MPI message from PE 0"), std::string::npos) << failure;
  }
  MpiJob shorter(2, "ucx");
  ASSERT_TRUE(send_to_pe_1(shorter, std::uint64_t{kDirectContext}, direct_bytes(8, 1)));
  EXPECT_NE(failure_after(shorter).find("has 8 bytes, and its header alone has 32"), std::string::npos);
  struct Longer {
    MessageHeader header;
    std::uint64_t more;
  };
  MpiJob longer(2, "ucx");
  ASSERT_TRUE(send_to_pe_1(longer, Longer{{.context = kDirectContext, .to = 1}, 0}, direct_bytes(8, 1)));
  EXPECT_NE(failure_after(longer).find("has a header of 40 bytes, not 32"), std::string::npos);
}

}  // namespace
}  // namespace weft::mpi
