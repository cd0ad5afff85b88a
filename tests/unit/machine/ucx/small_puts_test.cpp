#include "machine/ucx/small_puts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "tests/conformance/world.h"

namespace weft::machine::ucx {
namespace {

using base::StatusCode;
using conformance::Operation;
using conformance::World;
using memory::Buffer;
using memory::Kind;
using test_support::pattern;

// As the messages lie on the wire.
struct Request {
  std::uint64_t region;
  std::uint64_t offset_bytes;
  std::uint32_t slot;
  std::int32_t source_pe;
};
struct Answer {
  std::uint32_t slot;
  std::int32_t source_pe;
  std::uint32_t code;
};

// Three PEs over shared memory or TCP. PE 0 has sent something to PE 1, so its small puts there are messages.
class SmallPutsTest : public testing::TestWithParam<std::string> {
 protected:
  SmallPutsTest() : world_(GetParam(), 3) {
    for (const int pe : {1, 2}) {
      const RemoteMemory remote =
          world_.machine(pe).register_memory(world_.buffer(pe, Kind::kHost, 8)).value();
      Operation first;
      first.start(world_.machine(0).put_and_flush(pe, world_.buffer(0, Kind::kHost, 8), remote, 0, &first));
      EXPECT_TRUE(world_.finish(first));
    }
  }

  RemoteMemory publish(const Buffer& target) { return world_.machine(1).register_memory(target).value(); }
  void put(Operation& operation, const Buffer& local, const RemoteMemory& remote, std::size_t offset = 0) {
    operation.start(world_.machine(0).put_and_flush(1, local, remote, offset, &operation));
  }
  // A message of PE `from`, which may say anything.
  template <class Header>
  void forge(int from, int to, AmId id, const Header& header, std::size_t header_bytes = sizeof(Header),
             const Buffer& payload = {}) {
    auto& machine = dynamic_cast<TransportMachine&>(world_.machine(from));
    std::vector<std::byte> bytes(header_bytes);
    std::memcpy(bytes.data(), &header, std::min(header_bytes, sizeof header));
    auto& sending = sendings_.emplace_back();
    sending.start(machine.transport_am_send(to, id, bytes, payload, &sending));
  }
  bool all_sent() {
    return world_.until([&] { return std::ranges::all_of(sendings_, &Operation::done); });
  }

  std::deque<Operation> sendings_;
  World world_;
};

TEST_P(SmallPutsTest, SizesAroundTheLimit) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{8}, std::size_t{63}, SmallPuts::kMostBytes - 1,
                                 SmallPuts::kMostBytes, SmallPuts::kMostBytes + 1}) {
    Buffer target = world_.buffer(1, Kind::kHost, pattern(size + 16, 1));
    const RemoteMemory remote = publish(target);
    Operation operation;
    put(operation, world_.buffer(0, Kind::kHost, pattern(size, 2)), remote, 8);
    EXPECT_TRUE(operation.was_pending());
    ASSERT_TRUE(world_.finish(operation)) << size;
    ASSERT_TRUE(operation.status().ok()) << operation.status().to_string();
    auto expected = pattern(size + 16, 1);
    std::ranges::copy(pattern(size, 2), expected.begin() + 8);
    EXPECT_EQ(world_.read(1, target), expected) << size;
  }
}

TEST_P(SmallPutsTest, APutToMemoryThatIsNoLongerRegisteredIsRefused) {
  Buffer target = world_.buffer(1, Kind::kHost, pattern(64, 1));
  const RemoteMemory remote = publish(target);
  ASSERT_TRUE(world_.machine(1).deregister_memory(remote).ok());
  Operation operation;
  put(operation, world_.buffer(0, Kind::kHost, pattern(8, 2)), remote);
  ASSERT_TRUE(world_.finish(operation));
  EXPECT_EQ(operation.status().code(), StatusCode::kNotFound);
  EXPECT_NE(operation.status().to_string().find("PE 1"), std::string::npos) << operation.status().to_string();
  EXPECT_EQ(world_.read(1, target), pattern(64, 1));
}

TEST_P(SmallPutsTest, AFlushWaitsForThePutsBeforeIt) {
  constexpr std::size_t kCount = 100;
  for (const bool is_of_one_pe : {true, false}) {
    Buffer target = world_.buffer(1, Kind::kHost, kCount * 8);
    const RemoteMemory remote = publish(target);
    const Buffer local = world_.buffer(0, Kind::kHost, pattern(kCount * 8, 3));
    std::deque<Operation> puts(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const Buffer part{static_cast<std::byte*>(local.data) + i * 8, 8, {}, nullptr};
      put(puts[i], part, remote, i * 8);
    }
    std::vector<std::byte> found;
    Operation flush;
    flush.then = [&] { found = world_.read(1, target); };
    flush.start(is_of_one_pe ? world_.machine(0).flush(1, &flush) : world_.machine(0).flush(&flush));
    ASSERT_TRUE(world_.finish(flush));
    EXPECT_TRUE(flush.was_pending());
    EXPECT_TRUE(flush.status().ok()) << flush.status().to_string();
    EXPECT_EQ(found, pattern(kCount * 8, 3));
    EXPECT_TRUE(world_.until([&] { return std::ranges::all_of(puts, &Operation::done); }));
  }
}

TEST_P(SmallPutsTest, AFlushReportsThePutThatFailed) {
  Buffer target = world_.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = publish(target);
  ASSERT_TRUE(world_.machine(1).deregister_memory(remote).ok());
  const Buffer local = world_.buffer(0, Kind::kHost, 8);
  Operation refused;
  put(refused, local, remote);
  Operation flush;
  flush.start(world_.machine(0).flush(1, &flush));
  Operation other;  // has no put before it
  other.start(world_.machine(0).flush(2, &other));
  ASSERT_TRUE(world_.until([&] { return refused.done() && flush.done() && other.done(); }));
  EXPECT_EQ(refused.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(flush.status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(other.status().ok()) << other.status().to_string();
}

TEST_P(SmallPutsTest, WhatAPeerClaimsIsChecked) {
  Buffer target = world_.buffer(1, Kind::kHost, pattern(64, 1));
  const RemoteMemory remote = publish(target);
  const std::uint64_t region = MemoryRegions::id_of(remote);
  const Buffer eight = world_.buffer(2, Kind::kHost, pattern(8, 2));
  constexpr std::uint32_t kSlot = 77;  // which PE 2 does not use: the answers to these end nothing
  constexpr auto kHuge = std::numeric_limits<std::uint64_t>::max();
  for (const Request& request :
       {Request{region + 1000, 0, kSlot, 2}, Request{0, 0, kSlot, 2}, Request{region, 57, kSlot, 2},
        Request{region, 65, kSlot, 2}, Request{region, kHuge, kSlot, 2}, Request{region, kHuge - 7, kSlot, 2},
        Request{region, 0, kSlot, -1}, Request{region, 0, kSlot, 3}}) {
    forge(2, 1, kSmallPutAmId, request, sizeof request, eight);
  }
  const Request good{region, 0, kSlot, 2};
  for (const std::size_t header_bytes : {std::size_t{0}, sizeof good - 1, sizeof good + 8}) {
    forge(2, 1, kSmallPutAmId, good, header_bytes, eight);
  }
  // A region that would hold it, and more bytes than a small put has.
  Buffer large = world_.buffer(1, Kind::kHost, pattern(SmallPuts::kMostBytes + 8, 1));
  const Request too_large{MemoryRegions::id_of(publish(large)), 0, kSlot, 2};
  forge(2, 1, kSmallPutAmId, too_large, sizeof too_large,
        world_.buffer(2, Kind::kHost, SmallPuts::kMostBytes + 1));
  ASSERT_TRUE(all_sent());
  // A true put of PE 2 comes behind these, so they have been looked at when it is over.
  Operation behind;
  behind.start(
      world_.machine(2).put_and_flush(1, eight, publish(world_.buffer(1, Kind::kHost, 8)), 0, &behind));
  ASSERT_TRUE(world_.finish(behind));
  EXPECT_TRUE(behind.status().ok()) << behind.status().to_string();
  EXPECT_EQ(world_.read(1, target), pattern(64, 1));
  EXPECT_EQ(world_.read(1, large), pattern(SmallPuts::kMostBytes + 8, 1));
  Operation operation;
  put(operation, world_.buffer(0, Kind::kHost, pattern(8, 2)), remote);
  ASSERT_TRUE(world_.finish(operation));
  EXPECT_TRUE(operation.status().ok()) << operation.status().to_string();
}

TEST_P(SmallPutsTest, OnlyTheOwnerEndsAPut) {
  Buffer target = world_.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = publish(target);
  const Buffer local = world_.buffer(0, Kind::kHost, 8);
  std::deque<Operation> puts(2);
  for (Operation& operation : puts) put(operation, local, remote);
  // PE 1 makes no progress, so no answer of its own arrives.
  const auto without_owner = [&](auto condition) {
    for (int round = 0; round < 100'000 && !condition(); ++round) {
      world_.machine(0).progress();
      world_.machine(2).progress();
    }
    return condition();
  };
  for (const Answer& answer : {Answer{0, 2, 0}, Answer{1, 2, 0}, Answer{1000, 2, 0}, Answer{~0u, 1, 0},
                               Answer{0, -1, 0}, Answer{0, 3, 0}}) {
    forge(2, 0, kSmallPutAnswerAmId, answer);
    forge(2, 0, kSmallPutAnswerAmId, answer, sizeof answer - 1);
  }
  EXPECT_FALSE(without_owner([&] { return puts[0].done() || puts[1].done(); }));
  // A code that is no outcome.
  forge(1, 0, kSmallPutAnswerAmId, Answer{0, 1, static_cast<std::uint32_t>(StatusCode::kPending)});
  forge(1, 0, kSmallPutAnswerAmId, Answer{1, 1, 100'000});
  ASSERT_TRUE(without_owner([&] { return puts[0].done() && puts[1].done(); }));
  for (const Operation& operation : puts) {
    EXPECT_EQ(operation.status().code(), StatusCode::kCorrupt) << operation.status().to_string();
  }
  // The true answers come too late, and end nothing.
  EXPECT_TRUE(all_sent());
  Operation next;
  put(next, local, remote);
  EXPECT_TRUE(world_.finish(next));
}

TEST_P(SmallPutsTest, AClosedMachineEndsItsPutsAndFlushes) {
  Buffer target = world_.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = publish(target);
  const Buffer local = world_.buffer(0, Kind::kHost, 8);
  std::deque<Operation> operations(3);
  put(operations[0], local, remote);
  operations[1].start(world_.machine(0).flush(1, &operations[1]));
  operations[2].start(world_.machine(0).flush(&operations[2]));
  world_.machine(0).close();
  for (const Operation& operation : operations) {
    EXPECT_EQ(operation.status().code(), StatusCode::kClosed) << operation.status().to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, SmallPutsTest,
                         testing::Values(std::string("ucx"), std::string(conformance::kApart)),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Only a network tells that a peer is gone.
TEST(SmallPutsToAFailedPeerTest, EndWithAnError) {
  World world(std::string(conformance::kApart), 2);
  const Buffer target = world.buffer(1, Kind::kHost, 64);
  const RemoteMemory remote = world.machine(1).register_memory(target).value();
  const Buffer local = world.buffer(0, Kind::kHost, 8);
  Operation first;
  first.start(world.machine(0).put_and_flush(1, local, remote, 0, &first));
  ASSERT_TRUE(world.finish(first));
  std::deque<Operation> puts(5);
  for (Operation& put : puts) put.start(world.machine(0).put_and_flush(1, local, remote, 0, &put));
  Operation flush;
  flush.start(world.machine(0).flush(1, &flush));
  world.destroy(1);
  ASSERT_TRUE(world.until([&] {
    world.machine(0).progress();
    return std::ranges::all_of(puts, &Operation::done) && flush.done();
  }));
  for (const Operation& put : puts) EXPECT_EQ(put.status().code(), StatusCode::kPeerFailed);
  EXPECT_EQ(flush.status().code(), StatusCode::kPeerFailed);
  Operation late;
  late.start(world.machine(0).put_and_flush(1, local, remote, 0, &late));
  EXPECT_EQ(late.status().code(), StatusCode::kPeerFailed);
}

}  // namespace
}  // namespace weft::machine::ucx
