// Copies that are made only if the receiver does not take the bytes during the call.
#include <gtest/gtest.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "weft/base/error.h"

#include "machine/loopback/loopback_machine.h"
#include "machine/machine.h"
#include "tests/unit/runtime/message/attachments_job.h"

namespace weft::runtime {
namespace {

constexpr std::size_t kBytes = 1'000'000;
constexpr machine::AmId kTurnAm = machine::kMaxAmId;

// Sends late copies of `values` from PE 0, in a turn of its scheduler or outside of one, and overwrites `values` after
// the call.
struct LateCopy : AttachmentsJob {
  explicit LateCopy(int num_pes = 2) : AttachmentsJob("loopback", MessagingPath::kAuto, num_pes) {
    for (std::size_t i = 0; i < kBytes; ++i) values[i] = static_cast<std::uint8_t>(i * 7);
    original = values;
  }

  Attachment late_copy() { return late_copy(block); }
  Attachment late_copy(Bytes& into) {
    Attachment copy(Buffer{into.data(), into.size(), {}, nullptr});
    copy.give_away();
    copy.copy_later(values.data());
    return copy;
  }
  void send_now(int pe = 1) { send_now(pe, block); }
  void send_now(int pe, Bytes& into) {
    MessagePtr made = message();
    made->attach(late_copy(into));
    is_sending = true;
    job.runtime(0).send(pe, std::move(made));
    is_sending = false;
    arrived_in_call = inbox(1).messages.size();
    values.assign(kBytes, 0xee);
  }
  // Runs `function` in a turn of PE 0. Throws what it throws.
  void in_turn(std::function<void()> function) {
    struct Turn final : Work {
      explicit Turn(std::function<void()> body_in) : body(std::move(body_in)) {
        Work::function = [](Work* self, Runtime&, WorkAction) {
          auto& turn = *static_cast<Turn*>(self);
          try {
            turn.body();
          } catch (...) {
            turn.thrown = std::current_exception();
          }
        };
      }
      std::function<void()> body;
      std::exception_ptr thrown;
    };
    Turn turn(std::move(function));
    job.runtime(0).post(&turn);
    job.runtime(0).step();
    if (turn.thrown) std::rethrow_exception(turn.thrown);
  }
  void send_in_turn() { send_in_turn(block); }
  void send_in_turn(Bytes& into) {
    in_turn([&] { send_now(1, into); });
  }

  Bytes values = Bytes(kBytes);
  Bytes original;
  Bytes block = Bytes(kBytes);
  std::size_t arrived_in_call = 0;
  bool is_sending = false;
};

TEST(UncopiedTest, TheCopyIsMadeWhenTheReceiverIsBusy) {
  LateCopy test;
  test.send_in_turn();
  EXPECT_EQ(test.arrived_in_call, 0u);
  EXPECT_TRUE(test.block == test.original);
  test.expect_arrival(1);
  EXPECT_TRUE(test.inbox(1).bytes(0, 0) == test.original);
}

TEST(UncopiedTest, TheCopyIsMadeWhereTheCallerIsNotRunByTheScheduler) {
  LateCopy test;
  test.send_now();
  test.expect_arrival(1);
  EXPECT_TRUE(test.inbox(1).bytes(0, 0) == test.original);
}

TEST(UncopiedTest, TheCopyIsMadeForTheOwnPe) {
  LateCopy test;
  test.send_now(0);
  test.expect_arrival(0);
  EXPECT_TRUE(test.inbox(0).bytes(0, 0) == test.original);
}

TEST(UncopiedTest, TheCopyIsMadeForABroadcast) {
  LateCopy test(3);
  MessagePtr made = test.message();
  made->attach(test.late_copy());
  test.job.runtime(0).broadcast(std::move(made));
  test.values.assign(kBytes, 0xee);
  for (int pe = 0; pe < 3; ++pe) {
    test.expect_arrival(pe);
    EXPECT_TRUE(test.inbox(pe).bytes(0, 0) == test.original) << pe;
  }
}

// Runs `turn` in each progress of PE 0: by a message that PE 0 sends to itself, again and again.
struct InProgress : base::Completion {
  InProgress(Runtime& runtime_in, std::function<void()> turn_in)
      : base::Completion([](base::Completion*, base::Status, std::size_t) {}),
        runtime(runtime_in),
        turn(std::move(turn_in)) {
    base::check(runtime.machine().set_am_handler(
        kTurnAm,
        [](void* context, machine::AmArrival&) {
          auto& self = *static_cast<InProgress*>(context);
          self.turn();
          if (--self.left > 0) self.send();
        },
        this));
    send();
  }
  void send() { EXPECT_TRUE(runtime.machine().am_send(0, kTurnAm, {}, {}, this).ok()); }

  Runtime& runtime;
  std::function<void()> turn;
  int left = 20;
};

TEST(UncopiedTest, AReceiverThatTakesTheBytesInTheCallLeavesNothingToCopy) {
  LateCopy test;
  InProgress turns(test.job.runtime(0), [&] { test.job.runtime(1).step(); });
  test.send_in_turn();
  EXPECT_TRUE(test.block == Bytes(kBytes)) << "a copy was made";
  test.expect_arrival(1);
  EXPECT_TRUE(test.inbox(1).bytes(0, 0) == test.original);
}

// UCX must not be entered again from a function that it calls.
TEST(UncopiedTest, ACallInsideOfTheMachinesProgressDoesNotProgress) {
  LateCopy test;
  bool was_in_progress = false;
  bool may_progress = true;
  InProgress turns(test.job.runtime(0), [&] {
    if (!test.is_sending) return;
    was_in_progress = true;
    may_progress = test.job.runtime(0).may_progress();
  });
  test.send_in_turn();
  EXPECT_TRUE(was_in_progress);
  EXPECT_FALSE(may_progress);
  test.expect_arrival(1);
  EXPECT_TRUE(test.inbox(1).bytes(0, 0) == test.original);
}

TEST(UncopiedTest, ACallThatAnExceptionEndsLeavesTheCallersMemoryAlone) {
  LateCopy test;
  struct Thrown {};
  InProgress turns(test.job.runtime(0), [&] {
    if (test.is_sending) throw Thrown();
  });
  EXPECT_THROW(test.send_in_turn(), Thrown);
  test.values.assign(kBytes, 0xee);
  EXPECT_TRUE(test.block == test.original);
  test.expect_arrival(1);
  EXPECT_TRUE(test.inbox(1).bytes(0, 0) == test.original);
}

TEST(UncopiedTest, ASendThatTheMachineRefusesIsRevoked) {
  LateCopy test;
  auto& machine = dynamic_cast<machine::loopback::LoopbackMachine&>(test.job.runtime(0).machine());
  MessagePtr made = test.message();
  for (int i = 0; i < 2; ++i) made->attach(test.late_copy());
  Operation sent(report_sending(test.job.runtime(0), *made));
  machine.refuse_tag_sends(1);
  test.in_turn([&] { test.job.runtime(0).send(1, std::move(made)); });
  test.values.assign(kBytes, 0xee);
  EXPECT_EQ(test.outcome(std::move(sent)).code(), base::StatusCode::kOutOfMemory);
  test.turns(10);
  EXPECT_TRUE(test.inbox(1).messages.empty());
}

// After a call that waits in vain the next 15 copy at once, unless the receiver has too much to take.
TEST(UncopiedTest, CallsToAPeThatTakesNothingStopWaiting) {
  LateCopy test;
  int polls = 0;
  InProgress counter(test.job.runtime(0), [&] { polls += test.is_sending ? 1 : 0; });
  counter.left = std::numeric_limits<int>::max();
  std::vector<Bytes> blocks(24, Bytes(kBytes));
  std::vector<bool> waited;
  for (Bytes& block : blocks) {
    test.values = test.original;
    polls = 0;
    test.send_in_turn(block);
    waited.push_back(polls > 0);
  }
  std::vector<bool> expected(24, false);
  expected[0] = expected[16] = true;
  for (std::size_t call = 17; call < 24; ++call) expected[call] = true;  // 16 MiB are to be taken
  EXPECT_EQ(waited, expected);
  counter.left = 1;
  test.expect_arrival(1, blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_TRUE(test.inbox(1).bytes(i, 0) == test.original) << i;
}

}  // namespace
}  // namespace weft::runtime
