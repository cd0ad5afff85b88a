// Close, sleep and observers of a PE while its messages wait for room in the ring of a peer.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include "machine/transfer_observer.h"
#include "tests/conformance/world.h"

namespace weft::machine::ucx {
namespace {

using base::StatusCode;
using conformance::CheckedOperation;
using conformance::World;

// PE 1 makes no progress by itself, so its ring fills.
struct FullRingTest : ::testing::Test {
  FullRingTest() {
    world.on_message(1, 1, [this](AmArrival& arrival) {
      ASSERT_EQ(arrival.header.size(), 1u);
      arrived.push_back(std::to_integer<int>(arrival.header.front()));
    });
  }

  CheckedOperation& send() {
    const std::array header{static_cast<std::byte>(sends.size())};
    CheckedOperation& one = sends.emplace_back();
    return one.start(world.machine(0).am_send(1, 1, header, {payload.data(), payload.size()}, &one));
  }
  // Sends until `waiting` messages wait. Large ones, so that these are few.
  void fill(std::size_t waiting) {
    constexpr std::size_t kMost = 200;
    while (num_waiting() < waiting && sends.size() < kMost) send();
    ASSERT_EQ(num_waiting(), waiting);
  }
  std::size_t num_waiting() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(sends, [](const CheckedOperation& one) { return !one.done(); }));
  }
  // What has arrived is the first of what was sent, each message once and in order.
  void check_arrived(std::size_t count) const {
    ASSERT_EQ(arrived.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(arrived[i], static_cast<int>(i));
  }

  std::vector<std::byte> payload = std::vector<std::byte>(2000);
  std::deque<CheckedOperation> sends;
  std::vector<int> arrived;
  World world{"ucx", 2};
};

TEST_F(FullRingTest, MessagesWaitInTheirOrder) {
  fill(3);
  ASSERT_TRUE(world.until([&] { return num_waiting() == 0 && arrived.size() == sends.size(); }));
  check_arrived(sends.size());
}

TEST_F(FullRingTest, CloseEndsWhatWaitsOnce) {
  fill(3);
  const std::size_t in_ring = sends.size() - 3;
  world.machine(0).close();
  for (std::size_t i = 0; i < sends.size(); ++i) {
    ASSERT_TRUE(sends[i].done()) << i;
    EXPECT_EQ(sends[i].status().code(), i < in_ring ? StatusCode::kOk : StatusCode::kClosed) << i;
  }
  // The messages in the ring arrive after their sender has closed.
  while (world.machine(1).progress()) {
  }
  check_arrived(in_ring);
}

TEST_F(FullRingTest, CloseDropsWhatWaitsForAPeThatHasClosed) {
  fill(3);
  world.machine(1).close();
  world.machine(0).close();
  for (const CheckedOperation& one : sends) {
    ASSERT_TRUE(one.done());
    EXPECT_TRUE(one.status().ok()) << one.status().to_string();
  }
  EXPECT_TRUE(arrived.empty());
}

TEST_F(FullRingTest, ACompletionMaySendWhileItsPeCloses) {
  fill(1);
  CheckedOperation late;
  sends.back().then = [&] { late.start(world.machine(0).am_send(1, 1, {}, {}, &late)); };
  world.machine(0).close();
  ASSERT_TRUE(late.done());
  EXPECT_EQ(late.status().code(), StatusCode::kClosed);
}

// PE 1 tells nobody that it has given room. Without a limit of its own the sleep would not end.
TEST_F(FullRingTest, ASleeperLooksForRoomByItself) {
  fill(3);
  while (world.machine(1).progress()) {
  }
  while (num_waiting() > 0) {
    world.machine(0).wait(-1);
    world.machine(0).progress();
    while (world.machine(1).progress()) {
    }
  }
  check_arrived(sends.size());
}

// What arrives ends the sleep of a PE whose own messages wait.
TEST_F(FullRingTest, ASleeperIsWokenByMessagesToItself) {
  fill(1);
  bool has_arrived = false;
  world.on_message(0, 2, [&](AmArrival&) { has_arrived = true; });
  ASSERT_TRUE(world.machine(1).am_send_at_once(0, 2, {}, {}));
  world.machine(0).wait(-1);
  world.machine(0).progress();
  EXPECT_TRUE(has_arrived);
  EXPECT_EQ(num_waiting(), 1u);
  ASSERT_TRUE(world.until([&] { return num_waiting() == 0; }));
}

TEST_F(FullRingTest, WhatWaitsGoesOutBeforeAMessageWithoutACompletion) {
  fill(1);
  const std::array header{static_cast<std::byte>(sends.size())};
  ASSERT_TRUE(world.machine(0).am_send_at_once(1, 1, header, payload)) << "it is copied and waits too";
  ASSERT_TRUE(world.until([&] { return arrived.size() == sends.size() + 1; }));
  check_arrived(sends.size() + 1);
}

// Each transfer begins once and ends once.
struct CountingObserver final : TransferObserver {
  void transfer_began(const TransferEvent& event) override {
    EXPECT_EQ(event.type, TransferType::kAmSend);
    EXPECT_EQ(event.path, TransferPath::kHostQueue);
    EXPECT_TRUE(under_way.insert(event.number).second);
  }
  void transfer_ended(const TransferEvent& event, bool succeeded) override {
    EXPECT_EQ(event.path, TransferPath::kHostQueue);
    EXPECT_EQ(under_way.erase(event.number), 1u);
    ++(succeeded ? num_succeeded : num_failed);
  }
  std::set<std::uint64_t> under_way;
  std::size_t num_succeeded = 0;
  std::size_t num_failed = 0;
};

TEST_F(FullRingTest, AnObserverSeesWhatWaitsUntilItIsSent) {
  CountingObserver observer;
  world.machine(0).set_transfer_observer(&observer);
  fill(3);
  EXPECT_EQ(observer.under_way.size(), 3u);
  EXPECT_EQ(observer.num_succeeded, sends.size() - 3);
  ASSERT_TRUE(world.until([&] { return num_waiting() == 0; }));
  EXPECT_TRUE(observer.under_way.empty());
  EXPECT_EQ(observer.num_succeeded, sends.size());
  EXPECT_EQ(observer.num_failed, 0u);
  world.machine(0).set_transfer_observer(nullptr);
}

TEST_F(FullRingTest, AnObserverSeesThatCloseEndsWhatWaits) {
  CountingObserver observer;
  world.machine(0).set_transfer_observer(&observer);
  fill(2);
  world.machine(0).close();
  EXPECT_TRUE(observer.under_way.empty());
  EXPECT_EQ(observer.num_succeeded, sends.size() - 2);
  EXPECT_EQ(observer.num_failed, 2u);
  world.machine(0).set_transfer_observer(nullptr);
}

// A transfer that began without an observer is not told to one that comes later.
TEST_F(FullRingTest, AnObserverThatComesLaterSeesNothingOfWhatWaits) {
  fill(2);
  CountingObserver observer;
  world.machine(0).set_transfer_observer(&observer);
  ASSERT_TRUE(world.until([&] { return num_waiting() == 0; }));
  EXPECT_EQ(observer.num_succeeded + observer.num_failed, 0u);
  world.machine(0).set_transfer_observer(nullptr);
}

}  // namespace
}  // namespace weft::machine::ucx
