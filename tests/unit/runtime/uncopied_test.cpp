// Copies that are made only if the receiver does not take the bytes during the call.
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "machine/machine.h"
#include "tests/unit/runtime/attachments_job.h"

namespace weft::runtime {
namespace {

constexpr std::size_t kBytes = 300'000;
constexpr machine::AmId kTurnAm = machine::kMaxAmId;

// Sends a late copy of `values` from PE 0 to PE 1, in work that PE 0's scheduler runs or outside of it, and
// overwrites `values` after the call.
struct LateCopy : AttachmentsJob {
  explicit LateCopy(int num_pes = 2) : AttachmentsJob("loopback", MessagingPath::kAuto, num_pes) {
    for (std::size_t i = 0; i < kBytes; ++i) values[i] = static_cast<std::uint8_t>(i * 7);
    original = values;
  }

  void send_now(int pe = 1) {
    MessagePtr made = message();
    Attachment copy(Buffer{block.data(), block.size(), {}, nullptr});
    copy.give_away();
    copy.copy_later(values.data());
    made->attach(std::move(copy));
    job.runtime(0).send(pe, std::move(made));
    arrived_in_call = inbox(1).messages.size();
    values.assign(kBytes, 0xee);
  }

  void send_in_turn() {
    struct Turn final : Work {
      explicit Turn(LateCopy& test_in) : test(test_in) {
        function = [](Work* self, Runtime&, WorkAction) { static_cast<Turn*>(self)->test.send_now(); };
      }
      LateCopy& test;
    };
    Turn turn(*this);
    job.runtime(0).post(&turn);
    job.runtime(0).step();
  }

  Bytes values = Bytes(kBytes);
  Bytes original;
  Bytes block = Bytes(kBytes);
  std::size_t arrived_in_call = 0;
};

TEST(UncopiedTest, TheCopyIsMadeWhenTheReceiverIsBusy) {
  LateCopy test;
  test.send_in_turn();
  EXPECT_EQ(test.arrived_in_call, 0u);
  EXPECT_EQ(test.block, test.original);
  test.expect_arrival(1);
  EXPECT_EQ(test.inbox(1).bytes(0, 0), test.original);
}

TEST(UncopiedTest, TheCopyIsMadeWhereTheCallerIsNotRunByTheScheduler) {
  LateCopy test;
  test.send_now();
  test.expect_arrival(1);
  EXPECT_EQ(test.inbox(1).bytes(0, 0), test.original);
}

TEST(UncopiedTest, TheCopyIsMadeForTheOwnPe) {
  LateCopy test;
  test.send_now(0);
  test.expect_arrival(0);
  EXPECT_EQ(test.inbox(0).bytes(0, 0), test.original);
}

TEST(UncopiedTest, TheCopyIsMadeForABroadcast) {
  LateCopy test(3);
  MessagePtr made = test.message();
  Attachment copy(Buffer{test.block.data(), test.block.size(), {}, nullptr});
  copy.copy_later(test.values.data());
  made->attach(std::move(copy));
  test.job.runtime(0).broadcast(std::move(made));
  test.values.assign(kBytes, 0xee);
  for (int pe = 0; pe < 3; ++pe) {
    test.expect_arrival(pe);
    EXPECT_EQ(test.inbox(pe).bytes(0, 0), test.original) << pe;
  }
}

// PE 1 gets its turns while PE 0's call moves communication forward: a message that PE 0 sends to itself again and
// again runs them.
TEST(UncopiedTest, AReceiverThatTakesTheBytesInTheCallLeavesNothingToCopy) {
  LateCopy test;
  struct Turns : base::Completion {
    explicit Turns(Runtime& sender_in, Runtime& receiver_in)
        : base::Completion([](base::Completion*, base::Status, std::size_t) {}),
          sender(sender_in),
          receiver(receiver_in) {}
    void run() {
      receiver.step();
      if (++count < 20) static_cast<void>(sender.machine().am_send(0, kTurnAm, {}, {}, this));
    }
    Runtime& sender;
    Runtime& receiver;
    int count = 0;
  };
  Turns turns(test.job.runtime(0), test.job.runtime(1));
  ASSERT_TRUE(test.job.runtime(0)
                  .machine()
                  .set_am_handler(
                      kTurnAm,
                      [](void* context, machine::AmArrival&) { static_cast<Turns*>(context)->run(); }, &turns)
                  .ok());
  ASSERT_TRUE(test.job.runtime(0).machine().am_send(0, kTurnAm, {}, {}, &turns).ok());
  test.send_in_turn();
  EXPECT_EQ(test.block, Bytes(kBytes)) << "no copy was made";
  test.expect_arrival(1);
  EXPECT_EQ(test.inbox(1).bytes(0, 0), test.original);
}

}  // namespace
}  // namespace weft::runtime
