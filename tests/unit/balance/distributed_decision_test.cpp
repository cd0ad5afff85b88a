#include "balance/distributed_decision.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <string>

#include "snapshots.h"

namespace weft::balance {
namespace {

::testing::AssertionResult says(std::string_view text, std::string_view part) {
  const bool is_there = text.find(part) != std::string_view::npos;
  return ::testing::AssertionResult(is_there) << "'" << text << "' looked for '" << part << "'";
}

// All PEs of a job, and the messages between them, which arrive in a random order.
class Exchange {
 public:
  Exchange(const Strategy& strategy, const Snapshot& snapshot, std::uint64_t seed)
      : snapshot_(snapshot), random_(seed) {
    const std::uint64_t count = snapshot.objects.size();
    for (int pe = 0; pe < snapshot.num_pes; ++pe) {
      pes_.push_back(
          std::make_unique<DistributedDecision>(*strategy.distributed(), pe, snapshot.num_pes, count));
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const ObjectLoad& object = snapshot.objects[i];
      expect_ok(at(object.pe).add_object(i, object.load_s, object.can_move));
    }
    for (const CommunicationEdge& edge : snapshot.edges) {
      const int from_pe = snapshot.objects[edge.from].pe;
      const int to_pe = snapshot.objects[edge.to].pe;
      expect_ok(at(from_pe).add_edge(edge.from, edge.to, to_pe, edge.bytes));
      expect_ok(at(to_pe).add_edge(edge.to, edge.from, from_pe, edge.bytes));
    }
  }

  Placement run() {
    for (int pe = 0; pe < snapshot_.num_pes; ++pe) {
      expect_ok(at(pe).begin(snapshot_.background_load_s[static_cast<std::size_t>(pe)], snapshot_.speed(pe)));
      advance(pe);
    }
    while (!under_way_.empty()) deliver(random_() % under_way_.size());
    return result();
  }

  std::size_t num_messages() const { return num_messages_; }
  double time_s(int pe) { return at(pe).time_s(); }
  double time_before_s(int pe) { return at(pe).time_before_s(); }

 private:
  static void expect_ok(const base::Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }
  DistributedDecision& at(int pe) { return *pes_.at(static_cast<std::size_t>(pe)); }

  void advance(int pe) {
    auto messages = at(pe).advance();
    ASSERT_TRUE(messages.ok()) << messages.status().message();
    for (PairMessage& message : *messages) under_way_.emplace_back(pe, std::move(message));
    num_messages_ += messages->size();
  }

  void deliver(std::size_t which) {
    auto [from_pe, message] = std::move(under_way_[which]);
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(which));
    DistributedDecision& to = at(message.to_pe);
    if (message.proposal) {
      expect_ok(to.on_proposal(from_pe, message.round, std::move(*message.proposal)));
    } else {
      expect_ok(to.on_state(from_pe, message.round, message.state.time_s, message.state.speed));
    }
    advance(message.to_pe);
  }

  // As the origins hear it.
  Placement result() {
    Placement placement = present_placement(snapshot_);
    for (int pe = 0; pe < snapshot_.num_pes; ++pe) {
      EXPECT_TRUE(at(pe).is_over());
      std::uint64_t num_arrivals = 0;
      for (const Arrivals& arrivals : at(pe).arrivals()) {
        for (const std::uint64_t object : arrivals.objects) {
          EXPECT_EQ(snapshot_.objects.at(object).pe, arrivals.origin);
          expect_ok(at(arrivals.origin).take(pe, object));
          placement[object] = pe;
          ++num_arrivals;
        }
      }
      EXPECT_EQ(num_arrivals, at(pe).num_arrivals());
    }
    for (int pe = 0; pe < snapshot_.num_pes; ++pe) EXPECT_EQ(at(pe).num_untaken(), 0U);
    return placement;
  }

  const Snapshot& snapshot_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<DistributedDecision>> pes_;
  std::vector<std::pair<int, PairMessage>> under_way_;  // from a PE
  std::size_t num_messages_ = 0;
};

std::unique_ptr<Strategy> diffusion() { return std::move(make_strategy("diffusion")).value(); }

// place() simulates all PEs on one snapshot.
TEST(DistributedDecision, PlacesObjectsAsTheSimulationDoes) {
  const auto strategy = diffusion();
  const std::uint64_t first_seed = std::random_device()();
  std::printf("seeds from %llu\n", static_cast<unsigned long long>(first_seed));
  std::size_t num_moves = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Snapshot snapshot = random_snapshot(
        seed, {.fixed_objects = seed % 2 == 0, .background = seed % 3 == 0, .speeds = seed % 5 == 0});
    const Placement expected = strategy->place(snapshot);
    Exchange exchange(*strategy, snapshot, seed);
    ASSERT_EQ(exchange.run(), expected);
    num_moves += outcome("diffusion", snapshot).moves;
    const std::vector<double> before = pe_times_s(snapshot, present_placement(snapshot));
    const std::vector<double> after = pe_times_s(snapshot, expected);
    for (int pe = 0; pe < snapshot.num_pes; ++pe) {
      const auto i = static_cast<std::size_t>(pe);
      EXPECT_EQ(exchange.time_before_s(pe), before[i]);
      EXPECT_NEAR(exchange.time_s(pe), after[i], 1e-9 * (1 + after[i]));
    }
  }
  EXPECT_GT(num_moves, 1000U);
}

TEST(DistributedDecision, APeMeetsItsPartnersOnlyAndTellsThemOnce) {
  const auto strategy = diffusion();
  for (const int num_pes : {1, 2, 3, 8, 17, 64}) {
    const Snapshot even = blocks(num_pes, 4, [](int) { return 1; });
    Exchange exchange(*strategy, even, 1);
    EXPECT_EQ(exchange.run(), present_placement(even));
    std::size_t num_meetings = 0;
    const DistributedStrategy& rounds = *strategy->distributed();
    for (int round = 0; round < rounds.num_rounds(num_pes); ++round) {
      for (int pe = 0; pe < num_pes; ++pe)
        num_meetings += rounds.partner(pe, round, num_pes).has_value() ? 1 : 0;
    }
    EXPECT_EQ(exchange.num_messages(), num_meetings) << num_pes << " PEs";
  }
}

// Two PEs, of which PE 0 is tested. It has objects 0, 1 and 2; PE 1 has object 3.
struct Pair {
  explicit Pair(double load_s = 1, double background_s = 0) : decision(*strategy->distributed(), 0, 2, 4) {
    EXPECT_TRUE(decision.add_object(0, load_s, true).ok());
    EXPECT_TRUE(decision.add_object(1, load_s, true).ok());
    EXPECT_TRUE(decision.add_object(2, load_s, false).ok());
    EXPECT_TRUE(decision.begin(background_s).ok());
    auto sent = decision.advance();
    EXPECT_TRUE(sent.ok());
    EXPECT_EQ(sent->size(), 1U);
  }
  // Of advance(), after the partner's time of this round.
  base::Status after(double time_s, std::uint64_t round = 0) {
    if (base::Status status = decision.on_state(1, round, time_s, 1); !status.ok()) return status;
    return decision.advance().status();
  }
  base::Status proposal(TransferProposal given, std::uint64_t round = 0) {
    if (base::Status status = decision.on_proposal(1, round, std::move(given)); !status.ok()) return status;
    return decision.advance().status();
  }

  std::unique_ptr<Strategy> strategy = diffusion();
  DistributedDecision decision;
};

TEST(DistributedDecision, RefusesObjectsAndEdgesThatCannotBe) {
  const auto strategy = diffusion();
  DistributedDecision decision(*strategy->distributed(), 0, 2, 4);
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(decision.add_object(0, 1, true).ok());
  EXPECT_TRUE(says(decision.add_object(0, 1, true).message(), "which has it"));
  EXPECT_TRUE(says(decision.add_object(4, 1, true).message(), "object 4 of 4"));
  for (const double load_s : {-1.0, 2e12, kNoNumber}) {
    EXPECT_TRUE(says(decision.add_object(1, load_s, true).message(), "expected 0 to"));
    EXPECT_TRUE(says(decision.begin(load_s).message(), "a background load of"));
  }
  EXPECT_FALSE(decision.begin(0, 0).ok());
  EXPECT_TRUE(decision.add_edge(0, 3, 1, 8).ok());
  EXPECT_TRUE(says(decision.add_edge(1, 3, 1, 8).message(), "object 1 is not on PE 0"));
  EXPECT_TRUE(says(decision.add_edge(0, 3, 0, 8).message(), "object 3 is said to be on PE 0"));
  EXPECT_TRUE(says(decision.add_edge(0, 0, 1, 8).message(), "object 0 is said to be on PE 1"));
  EXPECT_TRUE(says(decision.add_edge(0, 4, 1, 8).message(), "object 4 of 4"));
  EXPECT_TRUE(says(decision.add_edge(0, 3, 2, 8).message(), "on PE 2"));
  EXPECT_TRUE(says(decision.add_edge(0, 3, -1, 8).message(), "object 0 talks to object 3"));
  EXPECT_TRUE(says(decision.add_edge(0, 3, 1, ~std::uint64_t{0} / 4).message(), "exceeds 2^62"));
}

TEST(DistributedDecision, RefusesStatesThatCannotBe) {
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  for (const double time_s : {1e31, kNoNumber, std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(says(Pair().after(time_s).message(), "it takes"));
  }
  for (const double speed : {0.0, -1.0, 1e7, kNoNumber}) {
    EXPECT_TRUE(says(Pair().decision.on_state(1, 0, 1, speed).message(), "has speed"));
  }
  const std::uint64_t num_rounds = 4 * 2;
  EXPECT_TRUE(says(Pair().after(1, num_rounds).message(), "round 8 of 8"));
  EXPECT_TRUE(says(Pair().decision.on_state(0, 0, 1, 1).message(), "not the partner of PE 0 in round 0"));
  EXPECT_TRUE(says(Pair().decision.on_state(-1, 0, 1, 1).message(), "not the partner"));
  EXPECT_TRUE(says(Pair().decision.on_state(1, 1, 1, 1).message(), "not the partner of PE 0 in round 1"));
  Pair pair;
  EXPECT_TRUE(pair.after(3, 2).ok());  // early
  EXPECT_TRUE(says(pair.after(3, 2).message(), "round 2 twice"));
  EXPECT_TRUE(pair.after(3).ok());
  EXPECT_TRUE(says(pair.after(3).message(), "over here"));
}

TEST(DistributedDecision, RefusesProposalsThatCannotBe) {
  const GivenObject theirs{3, 1, 1, 0};
  const auto refusal = [](TransferProposal proposal) {
    Pair pair;
    EXPECT_TRUE(pair.after(10).ok());
    return std::string(pair.proposal(std::move(proposal)).message());
  };
  EXPECT_EQ(refusal({{theirs}, {}}), "");
  EXPECT_TRUE(says(refusal({{theirs, theirs}, {}}), "object 3 comes to PE 0, which has it"));
  EXPECT_TRUE(says(refusal({{{4, 1, 1, 0}}, {}}), "object 4 of 4"));
  EXPECT_TRUE(says(refusal({{{3, 1, 2, 0}}, {}}), "is on PE 2"));
  EXPECT_TRUE(says(refusal({{{3, -1, 1, 0}}, {}}), "has a load of"));
  EXPECT_TRUE(says(refusal({{{3, 1, 0, 0}}, {}}), "object 3 comes back to PE 0, which has not given it"));
  EXPECT_TRUE(says(refusal({{{0, 1, 1, 0}}, {}}), "which has it"));
  EXPECT_TRUE(says(refusal({{{3, 1, 1, 2}}, {{0, 0, 8}}}), "comes with 2 edges, and 1 are there"));
  EXPECT_TRUE(
      says(refusal({{{3, 1, 1, 1}}, {{0, 0, 8}, {1, 0, 8}}}), "2 edges come with its objects, which have 1"));
  EXPECT_TRUE(says(refusal({{{3, 1, 1, 1}}, {{4, 0, 8}}}), "object 3 talks to object 4 of 4"));
  EXPECT_TRUE(says(refusal({{{3, 1, 1, 1}}, {{0, 2, 8}}}), "on PE 2"));
  EXPECT_TRUE(says(refusal({{{3, 1, 1, 1}}, {{0, 0, ~std::uint64_t{0}}}}), "exceeds 2^62"));
  Pair pair;
  EXPECT_TRUE(pair.proposal({{theirs}, {}}).ok());  // before the time of the round
  EXPECT_TRUE(says(pair.proposal({{theirs}, {}}).message(), "gives in round 0 twice"));
  EXPECT_TRUE(says(pair.after(1).message(), "has not more to do than PE 0"));
}

TEST(DistributedDecision, RefusesAnOwnerOfWhatIsNotAway) {
  Pair pair;
  EXPECT_TRUE(pair.after(0).ok());  // PE 0 gives one of its three objects
  for (const std::uint64_t round : {2, 4, 6}) EXPECT_TRUE(pair.after(1, round).ok());
  ASSERT_TRUE(pair.decision.is_over());
  EXPECT_EQ(pair.decision.num_untaken(), 1U);
  for (const std::uint64_t object : {1, 2, 3, 4}) EXPECT_FALSE(pair.decision.take(1, object).ok()) << object;
  for (const int pe : {-1, 0, 2}) EXPECT_FALSE(pair.decision.take(pe, 0).ok()) << pe;
  EXPECT_TRUE(pair.decision.take(1, 0).ok());
  EXPECT_EQ(pair.decision.num_untaken(), 0U);
  EXPECT_TRUE(says(pair.decision.take(1, 0).message(), "object 0, which is not away from PE 0"));
}

TEST(DistributedDecision, AnObjectThatComesBackIsNotAway) {
  Pair pair;
  EXPECT_TRUE(pair.after(0).ok());
  EXPECT_EQ(pair.decision.num_untaken(), 1U);
  EXPECT_TRUE(pair.after(10, 2).ok());
  EXPECT_TRUE(pair.proposal({{{0, 1, 0, 0}}, {}}, 2).ok());
  EXPECT_EQ(pair.decision.num_untaken(), 0U);
  EXPECT_EQ(pair.decision.num_arrivals(), 0U);
}

}  // namespace
}  // namespace weft::balance
