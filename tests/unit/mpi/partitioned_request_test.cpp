// Both ends of a partitioned message in one process.
#include "models/mpi/partitioned/partitioned_request.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "models/mpi/communicators/communicator.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

constexpr std::uint64_t kPairContext = 40;
constexpr int kPairTag = 3;

PartitionedCall partitioned_call(PointToPoint& engine, int peer, std::vector<char>& bytes, int partitions) {
  return {.engine = &engine,
          .context = kPairContext,
          .rank = engine.rank(),
          .peer = peer,
          .world_peer = peer,
          .tag = kPairTag,
          .view = DataView::of_bytes(bytes.data(), bytes.size()),
          .num_partitions = partitions};
}

template <class End>
Ref<End> make_end(MpiJob& job, int rank, std::vector<char>& bytes, int partitions) {
  PointToPoint& engine = job.ranks(rank);
  auto end = Request::make<End>(engine.messenger(), partitioned_call(engine, 1 - rank, bytes, partitions));
  end->make_persistent();
  end->find_peer();
  return end;
}

std::vector<char> counted(std::size_t size) {
  std::vector<char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), 'a');
  return bytes;
}

TEST(Partitioned, PartitionsArriveOneByOneInEachRound) {
  MpiJob job(2, "ucx");
  std::vector<char> sent(8);
  std::vector<char> received(8);
  const auto receive = make_end<PartitionedReceive>(job, 1, received, 2);
  const auto send = make_end<PartitionedSend>(job, 0, sent, 4);
  for (int round = 0; round < 3; ++round) {
    std::iota(sent.begin(), sent.end(), static_cast<char>(round));  // in place
    receive->start();
    send->start();
    send->make_ready(3);
    send->make_ready(2);
    ASSERT_EQ(job.run_until([&] { return receive->has_arrived(1); }), "");
    EXPECT_FALSE(receive->has_arrived(0));
    EXPECT_FALSE(send->is_complete());
    send->make_ready(0);
    send->make_ready(1);
    job.wait(send, receive);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(receive->outcome().size_bytes, 8);
    send->deactivate();
    receive->deactivate();
  }
}

TEST(Partitioned, WhatIsReadyBeforeThePeerIsThereWaits) {
  MpiJob job(2, "ucx");
  std::vector<char> sent = counted(20000);
  std::vector<char> received(20000);
  const auto send = make_end<PartitionedSend>(job, 0, sent, 2);
  send->start();
  send->make_ready(0);
  send->make_ready(1);
  job.settle();
  EXPECT_FALSE(send->is_complete());
  const auto receive = make_end<PartitionedReceive>(job, 1, received, 1);
  receive->start();
  job.wait(send, receive);
  EXPECT_EQ(received, sent);
}

TEST(Partitioned, RequestsThatAreFreedBeforeTheyMeetAreGone) {
  MpiJob job(2, "ucx");
  std::vector<char> unused(4);
  std::vector<char> sent = counted(4);
  std::vector<char> received(4);
  make_end<PartitionedSend>(job, 0, unused, 4);
  make_end<PartitionedReceive>(job, 1, unused, 2);
  const auto send = make_end<PartitionedSend>(job, 0, sent, 1);
  const auto receive = make_end<PartitionedReceive>(job, 1, received, 1);
  send->start();
  receive->start();
  send->make_ready(0);
  job.wait(send, receive);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(unused, std::vector<char>(4));
}

// The sanitizer finds what is left over.
TEST(Partitioned, AJobEndsWhilePartitionsAreAwaited) {
  MpiJob job(2, "ucx");
  std::vector<char> bytes(40000);
  const auto alone = make_end<PartitionedReceive>(job, 0, bytes, 2);
  const auto send = make_end<PartitionedSend>(job, 0, bytes, 2);
  const auto receive = make_end<PartitionedReceive>(job, 1, bytes, 2);
  alone->start();
  send->start();
  receive->start();
  send->make_ready(1);
  ASSERT_EQ(job.run_until([&] { return receive->has_arrived(1); }), "");
}

TEST(Partitioned, AnEndThatCannotBeEndsTheJob) {
  const std::uint64_t context = context_of(std::uint64_t{1} << 32 | 7, ContextUse::kMessages);
  const std::uint64_t of_another_rank = context_of(std::uint64_t{5} << 32 | 7, ContextUse::kMessages);
  using Numbers = std::vector<std::uint64_t>;  // context, partitions, bytes of each, bytes of an element
  for (Numbers numbers :
       {Numbers{context, 4, 1}, Numbers{context, ~std::uint64_t{0}, 1, 1},
        Numbers{context, std::uint64_t{1} << 40, std::uint64_t{1} << 40, 1}, Numbers{context, 4, 1, 0},
        Numbers{of_another_rank, 4, 1, 1}, Numbers{0, 4, 1, 1}}) {
    MpiJob job(2, "ucx");
    std::vector<char> bytes(4);
    const auto receive = make_end<PartitionedReceive>(job, 1, bytes, 4);
    receive->start();
    ASSERT_TRUE(
        job.ranks(0).send_bytes_at_once({kPairContext, 0, kPairTag, 1}, std::as_bytes(std::span(numbers))));
    const std::string failure = job.run_until([&] { return receive->is_complete(); });
    EXPECT_NE(failure.find("rank 0 describes a partitioned message that cannot be"), std::string::npos)
        << failure;
  }
}

}  // namespace
}  // namespace weft::mpi
