#include "models/mpi/partitioned/partition_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>

namespace weft::mpi {
namespace {

constexpr std::int64_t kMostCombined = 64;

std::int64_t bytes_in(const PartitionCut& cut, std::size_t message) {
  return cut.end_byte(message) - cut.first_byte(message);
}

TEST(PartitionCut, EndsWithTheSamePartitionsHaveAMessageForEach) {
  const PartitionCut cut({4, 8}, {4, 8}, kMostCombined);
  ASSERT_EQ(cut.num_messages(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(cut.end_byte(i), 8 * (static_cast<std::int64_t>(i) + 1));
}

TEST(PartitionCut, SmallPartitionsThatTheReceiverCannotTellApartAreOneMessage) {
  EXPECT_EQ(PartitionCut({8, 8}, {1, 64}, kMostCombined).num_messages(), 1U);
  EXPECT_EQ(PartitionCut({8, 8}, {2, 32}, kMostCombined).num_messages(), 2U);
  EXPECT_EQ(PartitionCut({16, 8}, {1, 128}, kMostCombined).num_messages(), 2U);  // full
}

TEST(PartitionCut, LargePartitionsOfTheSenderAreNotCombined) {
  EXPECT_EQ(PartitionCut({8, 65}, {1, 8 * 65}, kMostCombined).num_messages(), 8U);
}

TEST(PartitionCut, NoDataAndTooMuchDataAreOneMessage) {
  EXPECT_EQ(PartitionCut({5, 0}, {3, 0}, kMostCombined).num_messages(), 1U);
  EXPECT_EQ(PartitionCut({0, 0}, {3, 0}, kMostCombined).num_messages(), 1U);
  const PartitionCut too_much({4, 100}, {4, 50}, kMostCombined);
  EXPECT_EQ(too_much.num_messages(), 1U);
  EXPECT_EQ(too_much.end_partition(0), 4);
  EXPECT_EQ(too_much.messages_of(3).end, 1U);
}

TEST(PartitionCut, MessagesEndAtWholeElementsOfTheReceiver) {
  const PartitionCut cut({6, 8}, {3, 16, 16}, kMostCombined);
  ASSERT_EQ(cut.num_messages(), 3U);
  const PartitionCut uneven({6, 8}, {2, 24, 24}, kMostCombined);
  ASSERT_EQ(uneven.num_messages(), 2U);
  EXPECT_EQ(uneven.end_partition(0), 3);
  // No boundary of the sender but the last is one of an element.
  EXPECT_EQ(PartitionCut({5, 8}, {2, 20, 20}, kMostCombined).num_messages(), 1U);
}

TEST(PartitionCut, NumbersOfAPeerThatCannotBeAreFoundOut) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE((Partitions{-1, 8}).checked_bytes());
  EXPECT_FALSE((Partitions{1, -8}).checked_bytes());
  EXPECT_FALSE((Partitions{1, 8, 0}).checked_bytes());
  EXPECT_FALSE((Partitions{3, kMax / 2}).checked_bytes());
  EXPECT_EQ((Partitions{2, kMax / 2}).checked_bytes(), kMax - 1);
  EXPECT_EQ((Partitions{kMax, 0}).checked_bytes(), 0);
}

void check_messages(const PartitionCut& cut, const Partitions& sender, const Partitions& receiver) {
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < cut.num_messages(); ++i) {
    ASSERT_EQ(cut.first_partition(i), covered);
    ASSERT_GT(cut.end_partition(i), covered);
    for (std::int64_t p = covered; p < cut.end_partition(i); ++p) ASSERT_EQ(cut.message_of(p), i);
    covered = cut.end_partition(i);
    if (i + 1 == cut.num_messages()) break;
    // Each cut has a reason: the receiver has a boundary in the message, or it was full.
    const bool is_told_apart =
        cut.end_byte(i) / receiver.size_bytes > cut.first_byte(i) / receiver.size_bytes;
    ASSERT_TRUE(is_told_apart || bytes_in(cut, i) + sender.size_bytes > kMostCombined);
  }
  ASSERT_EQ(covered, sender.number);
}

// A partition of the receiver has arrived with the partitions of the sender that it overlaps, and those alone if nothing is combined.
void check_arrivals(const PartitionCut& cut, const Partitions& sender, const Partitions& receiver) {
  const std::int64_t total = sender.total_bytes();
  for (std::int64_t p = 0; p < receiver.number; ++p) {
    const auto [first, end] = cut.messages_of(p);
    ASSERT_LT(first, end);
    const std::int64_t from = std::min(p * receiver.size_bytes, total - 1);
    const std::int64_t to = std::min((p + 1) * receiver.size_bytes, total);
    ASSERT_LE(cut.first_byte(first), from);
    ASSERT_GE(cut.end_byte(end - 1), to);
    // Nothing behind the first boundary of the sender at or behind its end is waited for.
    if (to <= from) continue;
    ASSERT_EQ(cut.end_byte(end - 1), (to + sender.size_bytes - 1) / sender.size_bytes * sender.size_bytes);
  }
}

TEST(PartitionCut, RandomPartitionsAreCoveredInOrderAndArriveAsEarlyAsTheyCan) {
  const auto seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const Partitions sender{1 + static_cast<std::int64_t>(random() % 40),
                            1 + static_cast<std::int64_t>(random() % 100)};
    Partitions receiver{1 + static_cast<std::int64_t>(random() % 40), 0};
    // As much as the sender has, or a little more.
    receiver.size_bytes = (sender.total_bytes() + receiver.number - 1) / receiver.number;
    SCOPED_TRACE(::testing::Message() << sender.number << " of " << sender.size_bytes << " to "
                                      << receiver.number << " of " << receiver.size_bytes);
    const PartitionCut cut(sender, receiver, kMostCombined);
    check_messages(cut, sender, receiver);
    check_arrivals(cut, sender, receiver);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weft::mpi
