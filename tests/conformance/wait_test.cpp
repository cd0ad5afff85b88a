// Sleeping until there is work, and being woken.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

using std::chrono::steady_clock;

class WaitTest : public ConformanceTest {};

TEST_P(WaitTest, EndsWhenItsTimeIsOver) {
  World world = make_world(1);
  while (world.machine(0).progress()) {
  }
  // It may return early, but not never and not always at once.
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < std::chrono::milliseconds(20)) world.machine(0).wait(5'000);
  SUCCEED();
}

TEST_P(WaitTest, AnotherThreadWakesIt) {
  World world = make_world(1);
  std::atomic<bool> woken{false};
  std::thread waker([&] {
    woken = true;
    world.machine(0).wake();
  });
  // Without the wake this would not end.
  while (!woken) world.machine(0).wait(-1);
  waker.join();
}

TEST_P(WaitTest, AWakeBeforehandCounts) {
  World world = make_world(1);
  while (world.machine(0).progress()) {
  }
  world.machine(0).wake();
  world.machine(0).wait(-1);
}

TEST_P(WaitTest, ReturnsAtOnceWhenThereIsWork) {
  World world = make_world(2);
  for (std::size_t size : {std::size_t{8}, std::size_t{100'000}}) {
    bool arrived = false;
    world.on_message(1, 1, [&](machine::AmArrival&) { arrived = true; });
    CheckedOperation send;
    send.start(world.machine(0).am_send(1, 1, {}, world.buffer(0, kind(), size), &send));
    for (int round = 0; round < 1'000'000 && !(arrived && send.done()); ++round) {
      // Both machines are on this thread, so neither may sleep while the other needs progress. Therefore only
      // the receiver waits, and only after the sender has nothing left to do by itself.
      while (world.machine(0).progress() || world.machine(0).needs_polling()) {
      }
      if (!arrived) world.machine(1).wait(size == 8 ? -1 : 1000);
      world.machine(1).progress();
    }
    EXPECT_TRUE(arrived && send.done());
  }
}

INSTANTIATE_TEST_SUITE_P(All, WaitTest, ::testing::ValuesIn(machines_and_kinds_of_one_host()), param_name);

class PollingTest : public ConformanceTest {};

TEST_P(PollingTest, StagedCopiesAskForIt) {
  World world = make_world(1);
  EXPECT_FALSE(world.machine(0).needs_polling());
  CheckedOperation receive;
  CheckedOperation send;
  std::byte into[64];
  receive.start(
      world.machine(0).tag_receive(1, machine::kFullTagMask, {into, sizeof into, {}, nullptr}, &receive));
  send.start(world.machine(0).tag_send(0, 1, world.buffer(0, kind(), sizeof into), &send));
  EXPECT_TRUE(world.machine(0).needs_polling());
  world.machine(0).wait(-1);  // does not sleep
  ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); }));
  ASSERT_TRUE(world.until([&] { return !world.machine(0).needs_polling(); }));
}

INSTANTIATE_TEST_SUITE_P(All, PollingTest,
                         ::testing::Combine(::testing::ValuesIn(kMachines),
                                            ::testing::Values(memory::Kind::kEmulated)),
                         param_name);

}  // namespace
}  // namespace weft::conformance
