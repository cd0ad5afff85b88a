// A peer that is lost while the machine goes on: its operations end once, with kPeerFailed, and others are not touched.
#include <algorithm>
#include <deque>

#include "machine/peer_memory/peer_memory.h"
#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

using base::StatusCode;
using machine::kFullTagMask;
using memory::Buffer;

constexpr std::size_t kLostBytes = 3'000'000;
constexpr int kLost = 1;

class LossTest : public ConformanceTest {
 protected:
  static void survive(World& world) {
    for (int pe = 0; pe < world.num_pes(); ++pe) world.machine(pe).peer_memory().turn_off();
  }
  // What an operation with the lost PE may end with: it may have been over before.
  static bool is_end(const base::Status& status) {
    return status.ok() || status.code() == StatusCode::kPeerFailed;
  }
};

TEST_P(LossTest, EndsOperationsWithTheLostPeOnce) {
  World world = make_world(3);
  survive(world);
  world.on_message(kLost, 1, [](machine::AmArrival&) {});
  auto& machine = world.machine(0);
  auto there = world.machine(kLost).register_memory(world.buffer(kLost, kind(), kLostBytes));
  ASSERT_TRUE(there.ok());
  std::deque<CheckedOperation> operations;
  const auto start = [&](auto call) {
    auto& operation = operations.emplace_back();
    operation.start(call(&operation));
  };
  for (int i = 0; i < 5; ++i) {
    const Buffer small = world.buffer(0, kind(), kSmall);
    const Buffer large = world.buffer(0, kind(), kLostBytes);
    const auto tag = static_cast<machine::Tag>(i);
    start([&](auto* c) { return machine.tag_send(kLost, tag, small, c); });
    start([&](auto* c) { return machine.tag_send(kLost, tag, large, c); });
    start([&](auto* c) { return machine.am_send(kLost, 1, {}, large, c); });
    start([&](auto* c) { return machine.put(kLost, large, *there, 0, c); });
    start([&](auto* c) { return machine.put_and_flush(kLost, small, *there, 0, c); });
    start([&](auto* c) { return machine.get(kLost, large, *there, 0, c); });
    start([&](auto* c) { return machine.flush(kLost, c); });
  }
  EXPECT_TRUE(machine.lose_peer(kLost).ok());
  ASSERT_TRUE(world.until([&] {
    machine.progress();
    return std::ranges::all_of(operations, &CheckedOperation::done);
  }));
  for (const CheckedOperation& operation : operations)
    EXPECT_TRUE(is_end(operation.status())) << operation.status().to_string();
}

TEST_P(LossTest, LaterOperationsFailAtOnce) {
  World world = make_world(3);
  survive(world);
  auto& machine = world.machine(0);
  auto there = world.machine(kLost).register_memory(world.buffer(kLost, kind(), kSmall));
  ASSERT_TRUE(there.ok());
  EXPECT_TRUE(machine.lose_peer(kLost).ok());
  EXPECT_TRUE(machine.lose_peer(kLost).ok());
  const Buffer buffer = world.buffer(0, kind(), kSmall);
  const auto code_of = [&](auto call) {
    CheckedOperation operation;
    operation.start(call(&operation));
    EXPECT_TRUE(world.finish(operation));
    return operation.status().code();
  };
  EXPECT_EQ(code_of([&](auto* c) { return machine.tag_send(kLost, 1, buffer, c); }), StatusCode::kPeerFailed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.am_send(kLost, 1, {}, buffer, c); }),
            StatusCode::kPeerFailed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.put(kLost, buffer, *there, 0, c); }),
            StatusCode::kPeerFailed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.get(kLost, buffer, *there, 0, c); }),
            StatusCode::kPeerFailed);
}

TEST_P(LossTest, OtherPeersAreReached) {
  World world = make_world(3);
  survive(world);
  auto& machine = world.machine(0);
  const Buffer to_lost = world.buffer(0, kind(), kLostBytes);
  CheckedOperation lost;
  lost.start(machine.tag_send(kLost, 1, to_lost, &lost));
  EXPECT_TRUE(machine.lose_peer(kLost).ok());
  for (const std::size_t size : kSizes) {
    const auto contents = pattern(size, 7);
    const Buffer from = world.buffer(0, kind(), contents);
    const Buffer to = world.buffer(2, kind(), size);
    CheckedOperation sent;
    CheckedOperation received;
    received.start(world.machine(2).tag_receive(5, kFullTagMask, to, &received));
    sent.start(machine.tag_send(2, 5, from, &sent));
    ASSERT_TRUE(world.until([&] { return sent.done() && received.done(); }));
    EXPECT_TRUE(sent.status().ok());
    EXPECT_EQ(world.read(2, to), contents);
  }
  ASSERT_TRUE(world.finish(lost));
}

INSTANTIATE_TEST_SUITE_P(All, LossTest, every_machine_and_kind(), param_name);

}  // namespace
}  // namespace weft::conformance
