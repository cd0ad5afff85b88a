// The end of a machine: everything in flight completes once, and no peer can make it hang.
#include <algorithm>

#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

using base::StatusCode;
using machine::AmArrival;
using machine::AmPayload;
using machine::kFullTagMask;
using memory::Buffer;

constexpr std::size_t kHuge = 3'000'000;

class CloseTest : public ConformanceTest {
 protected:
  // What an operation may end with when its machine closes.
  static bool is_end(const base::Status& status) {
    return status.ok() || status.code() == StatusCode::kClosed || status.code() == StatusCode::kCancelled;
  }
};

TEST_P(CloseTest, EndsWhatIsInFlightOnce) {
  World world = make_world(2);
  std::vector<AmPayload> kept;
  world.on_message(0, 1, [&](AmArrival& arrival) { kept.push_back(arrival.take()); });
  world.on_message(1, 1, [](AmArrival&) {});
  auto there = world.machine(1).register_memory(world.buffer(1, kind(), kHuge));
  ASSERT_TRUE(there.ok());
  // Something arrives and is kept, small and large.
  std::deque<CheckedOperation> from_peer(2);
  for (std::size_t i = 0; i < 2; ++i) {
    Buffer buffer = world.buffer(1, kind(), i == 0 ? kSmall : kHuge);
    from_peer[i].start(world.machine(1).am_send(0, 1, {}, buffer, &from_peer[i]));
  }
  ASSERT_TRUE(world.until([&] { return kept.size() == 2; }));

  std::deque<CheckedOperation> operations;
  auto& closing = world.machine(0);
  for (int i = 0; i < 20; ++i) {
    Buffer small = world.buffer(0, kind(), kSmall);
    Buffer large = world.buffer(0, kind(), kHuge);
    const auto start = [&](auto call) {
      auto& operation = operations.emplace_back();
      operation.start(call(&operation));
    };
    const auto tag = static_cast<machine::Tag>(i);
    start([&](auto* c) { return closing.tag_receive(tag + 1000, kFullTagMask, large, c); });
    start([&](auto* c) { return closing.tag_send(1, tag, small, c); });
    start([&](auto* c) { return closing.tag_send(1, tag, large, c); });
    start([&](auto* c) { return closing.am_send(1, 1, {}, large, c); });
    start([&](auto* c) { return closing.put(1, large, *there, 0, c); });
    start([&](auto* c) { return closing.put_and_flush(1, large, *there, 0, c); });
    start([&](auto* c) { return closing.put_and_flush(1, small, *there, 0, c); });
    start([&](auto* c) { return closing.get(1, large, *there, 0, c); });
    start([&](auto* c) { return closing.flush(c); });
    if (i % 4 == 0) closing.progress();
  }
  Buffer into = world.buffer(0, kind(), kHuge);
  auto& receive = operations.emplace_back();
  receive.start(closing.am_receive(std::move(kept[1]), into, &receive));

  closing.close();
  for (CheckedOperation& operation : operations) {
    EXPECT_TRUE(operation.done());
    EXPECT_TRUE(is_end(operation.status())) << operation.status().to_string();
  }
  kept.clear();
  // The peer makes progress, and closes too.
  for (int round = 0; round < 100; ++round) world.machine(1).progress();
  world.machine(1).close();
  EXPECT_TRUE(std::ranges::all_of(from_peer, &CheckedOperation::done));
}

TEST_P(CloseTest, NothingStartsAfterwards) {
  World world = make_world(2);
  Buffer buffer = world.buffer(0, kind(), kSmall);
  auto& machine = world.machine(0);
  machine.close();
  machine.close();
  const auto code_of = [&](auto call) {
    CheckedOperation operation;
    operation.start(call(&operation));
    return operation.status().code();
  };
  EXPECT_EQ(code_of([&](auto* c) { return machine.tag_send(1, 1, buffer, c); }), StatusCode::kClosed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.tag_receive(1, kFullTagMask, buffer, c); }),
            StatusCode::kClosed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.am_send(1, 1, {}, buffer, c); }), StatusCode::kClosed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.put(1, buffer, {}, 0, c); }), StatusCode::kClosed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.put_and_flush(1, buffer, {}, 0, c); }),
            StatusCode::kClosed);
  EXPECT_EQ(code_of([&](auto* c) { return machine.flush(c); }), StatusCode::kClosed);
  EXPECT_EQ(machine.set_am_handler(1, nullptr, nullptr).code(), StatusCode::kClosed);
  EXPECT_FALSE(machine.register_memory(buffer).ok());
}

TEST_P(CloseTest, CompletionsOfCloseMayTryToStartMore) {
  World world = make_world(2);
  Buffer buffer = world.buffer(0, kind(), kSmall);
  CheckedOperation receive;
  CheckedOperation next;
  receive.then = [&] { next.start(world.machine(0).tag_receive(1, kFullTagMask, buffer, &next)); };
  receive.start(world.machine(0).tag_receive(1, kFullTagMask, buffer, &receive));
  world.machine(0).close();
  EXPECT_EQ(receive.status().code(), StatusCode::kClosed);
  EXPECT_EQ(next.status().code(), StatusCode::kClosed);
}

TEST_P(CloseTest, APeerThatWentAwayDoesNotMatter) {
  World world = make_world(3);
  Buffer small = world.buffer(0, kind(), kSmall);
  Buffer large = world.buffer(0, kind(), kHuge);
  CheckedOperation hello;
  CheckedOperation heard;
  heard.start(world.machine(1).tag_receive(1, kFullTagMask, world.buffer(1, kind(), kSmall), &heard));
  hello.start(world.machine(0).tag_send(1, 1, small, &hello));
  ASSERT_TRUE(world.until([&] { return hello.done() && heard.done(); }));
  world.machine(1).close();
  world.destroy(1);
  std::deque<CheckedOperation> operations(3);
  operations[0].start(world.machine(0).tag_send(1, 1, large, &operations[0]));
  operations[1].start(world.machine(0).tag_send(1, 1, small, &operations[1]));
  operations[2].start(world.machine(0).am_send(1, 1, {}, large, &operations[2]));
  for (int round = 0; round < 100; ++round) world.progress();

  // The others still reach one another.
  Buffer to = world.buffer(2, kind(), kSmall);
  CheckedOperation send;
  CheckedOperation receive;
  send.start(world.machine(0).tag_send(2, 5, small, &send));
  receive.start(world.machine(2).tag_receive(5, kFullTagMask, to, &receive));
  ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); }));

  world.machine(0).close();
  EXPECT_TRUE(std::ranges::all_of(operations, &CheckedOperation::done));
}

TEST_P(CloseTest, KeptPayloadsMayOutliveClose) {
  World world = make_world(2);
  std::vector<AmPayload> kept;
  world.on_message(1, 1, [&](AmArrival& arrival) { kept.push_back(arrival.take()); });
  std::deque<CheckedOperation> sends(2);
  sends[0].start(world.machine(0).am_send(1, 1, {}, world.buffer(0, kind(), kSmall), &sends[0]));
  sends[1].start(world.machine(0).am_send(1, 1, {}, world.buffer(0, kind(), kHuge), &sends[1]));
  ASSERT_TRUE(world.until([&] { return kept.size() == 2; }));
  world.machine(1).close();
  kept.clear();
  world.machine(0).close();
  EXPECT_TRUE(std::ranges::all_of(sends, &CheckedOperation::done));
}

TEST_P(CloseTest, WithoutAnyTraffic) {
  World world = make_world(3);
  for (int pe = 0; pe < 3; ++pe) world.machine(pe).close();
}

INSTANTIATE_TEST_SUITE_P(All, CloseTest, every_machine_and_kind(), param_name);

}  // namespace
}  // namespace weft::conformance
