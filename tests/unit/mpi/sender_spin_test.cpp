// What a sender decides by itself, and what two ranks make of it.
#include "models/mpi/p2p/sender_spin.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "tests/unit/mpi/offering_ranks.h"

namespace weft::mpi {
namespace {

// A sender to which nothing has happened yet.
struct Sender {
  // A message whose offer is here at once, comes while the sender waits, or does not come. Returns whether it has waited.
  enum class Offer : std::uint8_t { kHere, kComes, kNever };
  bool send(Offer offer) {
    const bool waits = spin.may_wait(num_heard) && offer != Offer::kHere;
    spin.sent(waits, offer == Offer::kHere || (waits && offer == Offer::kComes));
    return waits;
  }
  // The peer answers, and its next offer comes after the message that it is for, or comes in time.
  void hear() { ++num_heard; }
  void late_offer() { spin.told(true); }
  void offer() { spin.told(false); }
  // So many messages of a ping-pong whose offers are too late. Returns how many have waited.
  int exchange_late(int messages, Offer offer) {
    int waits = 0;
    for (int i = 0; i < messages; ++i) {
      waits += send(offer) ? 1 : 0;
      hear();
      late_offer();
    }
    return waits;
  }

  SenderSpin spin;
  std::uint32_t num_heard = 0;
};
using Offer = Sender::Offer;

TEST(SenderSpin, WaitsOnlyAfterAnOfferThatCameTooLate) {
  Sender sender;
  EXPECT_FALSE(sender.send(Offer::kComes));
  sender.hear();
  sender.offer();
  EXPECT_FALSE(sender.send(Offer::kComes));
  sender.hear();
  sender.late_offer();
  EXPECT_TRUE(sender.send(Offer::kComes));
}

TEST(SenderSpin, WaitsForEachMessageAsLongAsItPays) {
  Sender sender;
  EXPECT_EQ(sender.exchange_late(100, Offer::kComes), 99);
}

TEST(SenderSpin, StopsAfterWaitsInVainAndTriesEverMoreSeldom) {
  Sender sender;
  EXPECT_EQ(sender.exchange_late(4, Offer::kNever), 3);
  // 1, 3, 7, 15, 31 and then always 63 messages do not wait, and each time the next three do.
  const int messages = (1 + 3 + 7 + 15 + 31 + 63 + 63) + 7 * 3;
  EXPECT_EQ(sender.exchange_late(messages, Offer::kNever), 7 * 3);
}

TEST(SenderSpin, AWaitThatPaysForgetsThoseInVain) {
  Sender sender;
  sender.exchange_late(300, Offer::kNever);
  while (!sender.send(Offer::kComes)) sender.late_offer();
  EXPECT_EQ(sender.exchange_late(50, Offer::kComes), 50);
}

TEST(SenderSpin, NeedsASignOfThePeer) {
  Sender sender;
  sender.exchange_late(2, Offer::kNever);
  EXPECT_TRUE(sender.send(Offer::kNever));
  // That message has asked for offers.
  EXPECT_TRUE(sender.send(Offer::kNever));
  Sender quiet;
  quiet.late_offer();
  EXPECT_TRUE(quiet.send(Offer::kComes));
  // The peer posts its next receive at once, because this one was accepted.
  EXPECT_TRUE(quiet.send(Offer::kComes));
}

// As the second send of a step, whose receive is not offered.
TEST(SenderSpin, AMessageThatFollowsInVainSeldomWaits) {
  Sender sender;
  sender.late_offer();
  int follow_waits = 0;
  for (int step = 0; step < 100; ++step) {
    EXPECT_TRUE(sender.send(Offer::kComes)) << step;
    follow_waits += sender.send(Offer::kNever) ? 1 : 0;
    sender.hear();
  }
  EXPECT_GE(follow_waits, 1);
  EXPECT_LE(follow_waits, 6);
}

TEST(SenderSpin, SkipsGrowToABound) {
  int skipped = 0;
  for (const int expected : {1, 3, 7, 15, 31, 63, 63}) EXPECT_EQ(skipped = times_to_skip(skipped), expected);
}

struct WaitForOffersTest : ::testing::TestWithParam<const char*>, OfferingRanks {
  WaitForOffersTest() : OfferingRanks(GetParam()) {}
};

TEST_P(WaitForOffersTest, ASenderWaitsForOffersThatComeJustTooLate) {
  for (int round = 0; round < 100; ++round) {
    TestMemory out = filled(round);
    const auto receiving = receive(in);
    const auto sending = send(out);
    job.wait(sending, receiving);
    ASSERT_EQ(in.now(), out.filled());
  }
  EXPECT_GE(num_accepted(), 95U);
  EXPECT_GE(num_waits(), 90U);
  // No offers come any more.
  const std::uint64_t waits_before = num_waits();
  for (int round = 0; round < 5; ++round) {
    TestMemory out = filled(round);
    const auto sending = send(out);
    job.settle();
    const auto receiving = receive(in);
    job.wait(sending, receiving);
    ASSERT_EQ(in.now(), out.filled());
  }
  EXPECT_LE(num_waits() - waits_before, 3U);
}

// Each receive is posted when its message has been sent and has not been read.
TEST_P(WaitForOffersTest, ASenderWhoseOffersAlwaysComeTooLateSeldomWaits) {
  for (int round = 0; round < 200; ++round) {
    TestMemory out = filled(round);
    const auto sending = send(out);
    const auto receiving = receive(in);
    job.wait(sending, receiving);
    ASSERT_EQ(in.now(), out.filled());
  }
  EXPECT_GE(num_waits(), 3U) << "it never waits";
  EXPECT_LE(num_waits(), 24U);
}

// The offer is for a message as large as the receive.
TEST_P(WaitForOffersTest, OffersThatCannotBeAcceptedAreInVainForBoth) {
  for (const std::size_t size : {64U, 32U}) {  // the first one finds its offer late
    for (int round = 0; round < (size == 64 ? 1 : 200); ++round) {
      TestMemory out = filled(round, size);
      const auto receiving = receive(in);
      const auto sending = send(out);
      job.wait(sending, receiving);
      ASSERT_EQ(receiving->outcome().error, MPI_SUCCESS);
    }
  }
  EXPECT_LE(num_waits(), 24U);
  EXPECT_LE(num_made(), 40U);
}

TEST_P(WaitForOffersTest, SynchronousSendsAskForNoOffers) {
  for (int round = 0; round < 200; ++round) {
    TestMemory out = filled(round);
    const auto receiving = receive(in);
    const auto sending =
        job.ranks(0).send({kOfferContext, 0, kOfferTag, 1}, view_of_memory(out), SendMode::kSynchronous);
    job.wait(sending, receiving);
  }
  EXPECT_LE(num_made(), 40U);
  EXPECT_EQ(num_waits(), 0U);
}

// An offer is for one message. The receives of both are posted when rank 0 begins to send, and only the first waits for its offer.
TEST_P(WaitForOffersTest, TheSecondSendOfAStepDoesNotWait) {
  TestMemory second_in(job.memory(1), kDevicePlace, 64, 100);
  TestMemory answer(job.memory(1), kHostPlace, 8, 1);
  TestMemory answer_in(job.memory(0), kHostPlace, 8, 0);
  std::uint64_t accepted_before = 0;
  std::uint64_t waits_before = 0;
  for (int step = 0; step < 120; ++step) {
    const bool has_second = step >= 20;  // the first steps show that a wait pays
    if (step == 20) {
      accepted_before = num_accepted();
      waits_before = num_waits();
    }
    const auto receive_answer =
        job.ranks(0).receive({kOfferContext, 1, kOfferTag}, view_of_memory(answer_in), 1);
    const auto send_answer =
        job.ranks(1).send({kOfferContext, 1, kOfferTag, 0}, view_of_memory(answer), SendMode::kStandard);
    job.wait(send_answer, receive_answer);
    TestMemory out = filled(step);
    TestMemory second = filled(step + 1);
    const auto receiving = receive(in);
    const auto receiving_second = receive(second_in, kOfferTag + 1);
    const auto sending = send(out);
    const auto sending_second = has_second ? send(second, kOfferTag + 1) : Ref<SendRequest>();
    job.wait(sending, receiving);
    if (has_second) {
      job.wait(sending_second, receiving_second);
      ASSERT_EQ(second_in.now(), second.filled());
    } else {
      receiving_second->cancel();
    }
    ASSERT_EQ(in.now(), out.filled());
  }
  EXPECT_GE(num_accepted() - accepted_before, 90U);
  EXPECT_GE(num_waits() - waits_before, 90U) << "the first sends have waited";
  EXPECT_LE(num_waits() - waits_before, 110U);
}

// The receiver makes few offers when the sender begins to wait for them.
TEST_P(WaitForOffersTest, ASenderThatHasWaitedIsOfferedReceivesAgain) {
  TestMemory other = filled(1, 8, kHostPlace);
  TestMemory other_in(job.memory(1), kHostPlace, 8, 0);
  for (int round = 0; round < 200; ++round) {
    const auto receiving = receive(in);
    const auto send_other = send(other, kOfferTag + 1);
    const auto receive_other = receive(other_in, kOfferTag + 1);
    job.wait(send_other, receive_other);
    receiving->cancel();
  }
  const std::uint64_t accepted_before = num_accepted();
  for (int round = 0; round < 200; ++round) {
    TestMemory out = filled(round);
    const auto receiving = receive(in);
    const auto sending = send(out);
    job.wait(sending, receiving);
    ASSERT_EQ(in.now(), out.filled());
  }
  EXPECT_GE(num_accepted() - accepted_before, 100U);
}

INSTANTIATE_TEST_SUITE_P(Machines, WaitForOffersTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weft::mpi
