// Receives in device memory that are offered to their senders before the messages are sent.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "weft/mpi/mpi.h"

#include "tests/unit/mpi/offering_ranks.h"

namespace weft::mpi {
namespace {

struct ReceiveOffersTest : ::testing::TestWithParam<const char*>, OfferingRanks {
  ReceiveOffersTest() : OfferingRanks(GetParam()) {}
};

TEST_P(ReceiveOffersTest, EachMessageOfAPingPongGoesIntoAnOfferedReceive) {
  for (int round = 0; round < 200; ++round) exchange(round);
  EXPECT_EQ(num_accepted(), 201U);
}

TEST_P(ReceiveOffersTest, AReceiveWithAnyTagIsOfferedToo) {
  TestMemory out = filled(3);
  const auto receiving = receive(in, kAny);
  job.settle();
  const auto sending = send(out, 17);
  job.wait(sending, receiving);
  EXPECT_EQ(receiving->outcome().tag, 17);
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_EQ(num_accepted(), 2U);
}

TEST_P(ReceiveOffersTest, AMessageThatTheReceiveDoesNotMatchMakesTheOfferVoid) {
  const std::vector<std::uint8_t> before = in.now();
  TestMemory other_in(job.memory(1), kDevicePlace, 64, 50);
  TestMemory other = filled(7);
  TestMemory out = filled(9);
  for (const bool is_other_context : {false, true}) {
    const auto receiving = receive(in);
    job.settle();
    const auto send_other =
        is_other_context ? send(other, kOfferTag, kOfferContext + 2) : send(other, kOfferTag + 1);
    job.settle();
    EXPECT_FALSE(receiving->is_complete());
    const auto sending = send(out);
    job.wait(sending, receiving);
    EXPECT_EQ(in.now(), out.filled());
    const MatchKey key{is_other_context ? kOfferContext + 2 : kOfferContext, 0,
                       is_other_context ? kOfferTag : kOfferTag + 1};
    const auto receive_other = job.ranks(1).receive(key, view_of_memory(other_in), 0);
    job.wait(send_other, receive_other);
    EXPECT_EQ(other_in.now(), other.filled());
  }
  EXPECT_EQ(num_accepted(), 1U);
}

TEST_P(ReceiveOffersTest, AMessageOfAnotherSizeOrKindTakesItsUsualWay) {
  for (const memory::Place place : {kDevicePlace, kHostPlace}) {
    for (const std::size_t size : {0U, 1U, 63U, 64U, 65U, 5000U}) {
      if (place == kDevicePlace && size == 64) continue;
      SCOPED_TRACE(std::to_string(size));
      TestMemory out = filled(7, size, place);
      const auto receiving = receive(in);
      job.settle();
      const auto sending = send(out);
      job.wait(sending, receiving);
      EXPECT_EQ(receiving->outcome().error, size > 64 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
      const std::vector<std::uint8_t> now = in.now();
      const auto taken = static_cast<std::ptrdiff_t>(std::min<std::size_t>(size, 64));
      EXPECT_TRUE(std::equal(now.begin(), now.begin() + taken, out.filled().begin()));
    }
  }
  EXPECT_EQ(num_accepted(), 1U);
  for (int round = 0; round < 70; ++round) exchange(round);
  EXPECT_GT(num_accepted(), 2U);
}

TEST_P(ReceiveOffersTest, ASendThatWaitsForItsMatchTakesItsUsualWay) {
  TestMemory out = filled(7);
  const auto receiving = receive(in);
  job.settle();
  const auto sending =
      job.ranks(0).send({kOfferContext, 0, kOfferTag, 1}, view_of_memory(out), SendMode::kSynchronous);
  job.wait(sending, receiving);
  EXPECT_EQ(in.now(), out.filled());
  EXPECT_EQ(num_accepted(), 1U);
}

TEST_P(ReceiveOffersTest, NothingIsWrittenAfterAReceiveWasCancelled) {
  TestMemory out = filled(7);
  const std::vector<std::uint8_t> before = in.now();
  const auto cancelled = receive(in);
  job.settle();
  EXPECT_EQ(cancelled->cancel(), MPI_SUCCESS);
  ASSERT_TRUE(cancelled->is_complete());
  EXPECT_TRUE(cancelled->outcome().cancelled);
  const auto sending = send(out);
  job.settle();
  EXPECT_EQ(in.now(), before);
  TestMemory later(job.memory(1), kDevicePlace, 64, 50);
  const auto receiving = receive(later);
  job.wait(sending, receiving);
  EXPECT_EQ(later.now(), out.filled());
  EXPECT_EQ(in.now(), before);
}

// The source may compute, and read none of the offers.
TEST_P(ReceiveOffersTest, ForOneMessageThereIsOneOffer) {
  const std::uint64_t made_before = num_made();
  for (int i = 0; i < 1000; ++i) receive(in)->cancel();
  EXPECT_EQ(num_made() - made_before, 1U);
  exchange(3);
  exchange(4);
  EXPECT_EQ(num_made() - made_before, 2U);
}

TEST_P(ReceiveOffersTest, AReceiveWhoseOfferWasAcceptedIsNotCancelled) {
  TestMemory out = filled(7);
  const auto receiving = receive(in);
  job.settle();
  const auto sending = send(out);
  EXPECT_EQ(num_accepted(), 2U);
  EXPECT_EQ(receiving->cancel(), MPI_SUCCESS);
  EXPECT_FALSE(receiving->is_complete());
  job.wait(sending, receiving);
  EXPECT_FALSE(receiving->outcome().cancelled);
  EXPECT_EQ(in.now(), out.filled());
}

// The offer is on its way when the message is sent, as in a ping-pong of blocking calls.
// One of them is offered, in each step the same.
TEST_P(ReceiveOffersTest, OfSeveralReceivesInAStepOneIsOffered) {
  for (const int receives : {2, 3, 4, 5, 8, 16}) {
    SCOPED_TRACE(std::to_string(receives) + " receives");
    std::deque<TestMemory> ins;
    for (int i = 0; i < receives; ++i) ins.emplace_back(job.memory(1), kDevicePlace, 64, 100);
    const std::uint64_t accepted_before = num_accepted();
    const std::uint64_t waits_before = num_waits();
    for (int step = 0; step < 100; ++step) {
      std::deque<TestMemory> outs;
      std::vector<Ref<ReceiveRequest>> receiving;
      std::vector<Ref<SendRequest>> sending;
      for (int i = 0; i < receives; ++i)
        receiving.push_back(receive(ins[static_cast<std::size_t>(i)], kOfferTag + i));
      job.settle();
      for (int i = 0; i < receives; ++i) {
        outs.push_back(filled(step + i));
        sending.push_back(send(outs.back(), kOfferTag + i));
      }
      for (int i = 0; i < receives; ++i) {
        job.wait(sending[static_cast<std::size_t>(i)], receiving[static_cast<std::size_t>(i)]);
        ASSERT_EQ(ins[static_cast<std::size_t>(i)].now(), outs[static_cast<std::size_t>(i)].filled());
      }
    }
    EXPECT_GE(num_accepted() - accepted_before, 90U);
    EXPECT_LE(num_waits() - waits_before, 24U);
  }
}

TEST_P(ReceiveOffersTest, AfterOffersInVainFewAreMade) {
  const std::uint64_t made_before = num_made();
  TestMemory other = filled(1, 8, kHostPlace);
  TestMemory other_in(job.memory(1), kHostPlace, 8, 0);
  for (int round = 0; round < 100; ++round) {
    TestMemory out = filled(round);
    const auto receiving = receive(in);
    job.settle();
    const auto send_other = send(other, kOfferTag + 1);
    job.settle();
    const auto sending = send(out);
    const auto receive_other = receive(other_in, kOfferTag + 1);
    job.wait(sending, receiving, send_other, receive_other);
    ASSERT_EQ(in.now(), out.filled());
  }
  EXPECT_EQ(num_accepted(), 1U);
  EXPECT_GE(num_made() - made_before, 4U);
  EXPECT_LE(num_made() - made_before, 10U);
  for (int round = 0; round < 80; ++round) exchange(round);
  EXPECT_GE(num_accepted(), 15U);
}

TEST_P(ReceiveOffersTest, OfSeveralReceivesEachGetsItsOwnMessage) {
  std::vector<TestMemory> out;
  std::deque<TestMemory> into;
  std::vector<Ref<ReceiveRequest>> receives;
  std::vector<Ref<SendRequest>> sends;
  for (int i = 0; i < 5; ++i) {
    out.push_back(filled(10 * i));
    into.emplace_back(job.memory(1), kDevicePlace, 64, 200);
  }
  for (int round = 0; round < 3; ++round) {
    receives.clear();
    sends.clear();
    receives.push_back(receive(into[0], kOfferTag, round == 1 ? kAny : 0));
    for (std::size_t i = 1; i < 5; ++i) receives.push_back(receive(into[i]));
    job.settle();
    for (TestMemory& one : out) sends.push_back(send(one));
    for (std::size_t i = 0; i < 5; ++i) {
      job.wait(sends[i], receives[i]);
      EXPECT_EQ(into[i].now(), out[i].filled()) << i;
    }
  }
}

// The job may end while a receive is offered, or after the offer was accepted.
TEST_P(ReceiveOffersTest, AReceiveEndsWithItsJob) {
  TestMemory out = filled(7);
  const auto receiving = receive(in);
  job.settle();
  const auto sending = send(out);
  job.runtime(1).close();
  EXPECT_TRUE(receiving->is_complete());
}

// Receives of random tags, posted, cancelled and awaited in random order, beside messages of both kinds of memory. The
// messages of one tag arrive once each, in order.
TEST_P(ReceiveOffersTest, RandomMessagesArriveOnceAndInOrder) {
  struct Receive {
    Ref<ReceiveRequest> request;
    TestMemory* into;
    std::vector<std::uint8_t> got;  // when it was complete
  };
  std::uint64_t accepted = 0;
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    OfferingRanks ranks(GetParam());
    MpiJob& random_job = ranks.job;
    std::vector<TestMemory> fixed;  // used again and again, so that they are posted
    for (int i = 0; i < 3; ++i) fixed.emplace_back(random_job.memory(1), kDevicePlace, 64, 0);
    const auto below = [&](std::size_t limit) { return random() % limit; };
    std::deque<TestMemory> others;
    std::vector<Receive> receives;
    std::vector<Ref<SendRequest>> sends;
    std::map<int, std::vector<std::vector<std::uint8_t>>> sent;
    std::vector<std::ptrdiff_t> users(fixed.size(), -1);  // which receive has it
    const auto poll = [&] {
      for (Receive& one : receives) {
        if (!one.request->is_complete() || one.into == nullptr) continue;
        one.got = one.into->now();
        for (std::size_t i = 0; i < fixed.size(); ++i) {
          if (one.into == &fixed[i]) users[i] = -1;
        }
        one.into = nullptr;
      }
    };
    const auto post = [&] {
      poll();
      const std::size_t which = below(fixed.size());
      TestMemory* into = &fixed[which];
      if (users[which] >= 0) {
        into = &others.emplace_back(random_job.memory(1), below(2) == 0 ? kDevicePlace : kHostPlace, 64, 0);
      } else {
        users[which] = static_cast<std::ptrdiff_t>(receives.size());
      }
      const int tag = below(6) == 0 ? kAny : static_cast<int>(below(6) == 0);
      receives.push_back({ranks.receive(*into, tag, below(6) == 0 ? kAny : 0), into, {}});
      if (below(4) != 0) random_job.settle();
    };
    for (int step = 0; step < 200; ++step) {
      const std::size_t what = below(20);
      if (what < 8) {
        post();
      } else if (what < 16) {
        const int tag = static_cast<int>(below(6) == 0);
        TestMemory& out = others.emplace_back(
            ranks.filled(static_cast<int>(below(200)), 64, below(6) == 0 ? kHostPlace : kDevicePlace));
        sent[tag].push_back(out.filled());
        sends.push_back(ranks.send(out, tag));
      } else if (what == 16 && !receives.empty()) {
        receives[below(receives.size())].request->cancel();
      } else {
        random_job.settle();
      }
    }
    // Receives for the messages that are left; then the receives that are left end.
    for (std::size_t i = 0; i < sends.size(); ++i) {
      TestMemory& into = others.emplace_back(random_job.memory(1), kHostPlace, 64, 0);
      receives.push_back({ranks.receive(into, kAny), &into, {}});
    }
    random_job.settle();
    for (const Receive& one : receives) one.request->cancel();
    random_job.settle();
    poll();
    for (const auto& one : sends) ASSERT_TRUE(one->is_complete());
    std::map<int, std::size_t> next;
    for (const Receive& one : receives) {
      ASSERT_TRUE(one.request->is_complete());
      if (one.request->outcome().cancelled) continue;
      const int tag = one.request->outcome().tag;
      ASSERT_LT(next[tag], sent[tag].size());
      ASSERT_EQ(one.got, sent[tag][next[tag]]) << "message " << next[tag] << " with tag " << tag;
      ++next[tag];
    }
    for (const auto& [tag, messages] : sent) EXPECT_EQ(next[tag], messages.size()) << "tag " << tag;
    accepted += ranks.num_accepted() - 1;
  }
  EXPECT_GT(accepted, 30U) << "the seeds make too few offers that are accepted";
}

// --- Claims of a peer

std::string failure_of(MpiJob& job) {
  int turns = 0;
  return job.run_until([&] { return ++turns > 200; });
}

void send_as_pe_0(MpiJob& job, PointToPoint::Handler handler, const void* bytes, std::size_t size_bytes) {
  runtime::MessagePtr message = runtime::Message::create(
      job.runtime(0), static_cast<runtime::HandlerId>(job.ranks(0).first_handler() + handler), size_bytes);
  std::memcpy(message->payload(), bytes, size_bytes);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  job.runtime(0).send(1, std::move(message));
}

struct Accepting {
  MessageHeader header;
  std::uint64_t number = 0;
};

TEST_P(ReceiveOffersTest, AMessageThatAcceptsWhatWasNotOfferedEndsTheJob) {
  const std::uint32_t next = job.ranks(0).num_sent_to(1);
  const MessageHeader right{
      .context = kOfferContext, .sequence = next, .tag = kOfferTag, .to = 1, .flags = kOffered};
  MessageHeader other_tag = right;
  other_tag.tag = kOfferTag + 1;
  MessageHeader more_flags = right;
  more_flags.flags |= kCharged;
  const Accepting wrong[] = {{right, 77}, {other_tag, 1}, {more_flags, 1}};
  for (const Accepting& one : wrong) {
    MpiJob fresh(2, GetParam());
    Accepting claim = one;
    claim.header.sequence = 0;
    TestMemory into(fresh.memory(1), kDevicePlace, 64, 0);
    const auto receiving = fresh.ranks(1).receive({kOfferContext, 0, kOfferTag}, view_of_memory(into), 0);
    send_as_pe_0(fresh, PointToPoint::kBlock, &claim, sizeof claim);
    const std::string failure = failure_of(fresh);
    EXPECT_NE(failure.find("an MPI message from PE 0"), std::string::npos) << failure;
    EXPECT_EQ(into.now(), into.filled());
  }
}

TEST_P(ReceiveOffersTest, AnOfferThatCannotBeRightEndsTheJob) {
  const ReceiveOffer right{.context = kOfferContext, .size_bytes = 64, .from = 0, .to = 1};
  ReceiveOffer of_another = right;
  of_another.from = 1;
  ReceiveOffer to_another = right;
  to_another.to = 0;
  ReceiveOffer to_nobody = right;
  to_nobody.to = 2;
  ReceiveOffer of_nobody = right;
  of_nobody.from = -1;
  for (const ReceiveOffer& offer : {of_another, to_another, to_nobody, of_nobody}) {
    MpiJob fresh(2, GetParam());
    send_as_pe_0(fresh, PointToPoint::kOffer, &offer, sizeof offer);
    EXPECT_NE(failure_of(fresh).find("which cannot be"), std::string::npos);
  }
  MpiJob fresh(2, GetParam());
  send_as_pe_0(fresh, PointToPoint::kOffer, &right, sizeof right - 1);
  EXPECT_NE(failure_of(fresh).find("with a wrong size"), std::string::npos);
}

// It costs speed only: there is no such receive, and the message takes its usual way.
TEST_P(ReceiveOffersTest, AnOfferOfNothingIsNotAccepted) {
  const ReceiveOffer claim{.context = kOfferContext,
                           .size_bytes = 64,
                           .sequence = job.ranks(1).num_sent_to(0),
                           .number = 12345,
                           .source = 1,
                           .tag = kOfferTag,
                           .from = 0,
                           .to = 1};
  send_as_pe_0(job, PointToPoint::kOffer, &claim, sizeof claim);
  job.settle();
  TestMemory out(job.memory(1), kDevicePlace, 64, 9);
  TestMemory into(job.memory(0), kDevicePlace, 64, 0);
  const auto sending =
      job.ranks(1).send({kOfferContext, 1, kOfferTag, 0}, view_of_memory(out), SendMode::kStandard);
  EXPECT_EQ(job.ranks(1).offers().num_accepted(), 0U);
  const auto receiving = job.ranks(0).receive({kOfferContext, 1, kOfferTag}, view_of_memory(into), 1);
  job.wait(sending, receiving);
  EXPECT_EQ(into.now(), out.filled());
}

INSTANTIATE_TEST_SUITE_P(Machines, ReceiveOffersTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weft::mpi
