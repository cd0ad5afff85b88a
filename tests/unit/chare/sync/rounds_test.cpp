// Steps that the PEs decide together, in jobs.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/observer.h"
#include "weft/weft.h"

#include "balance/load_file.h"
#include "balance/strategy_table.h"
#include "models/chare/sync/distributed_step.h"
#include "models/chare/sync/local_rounds.h"
#include "models/chare/sync/messages.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/chare_handler.h"
#include "tests/unit/chare/sync/sync_worker.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::chare::sync_testing {
namespace {

using balance::Placement;
using balance::Snapshot;
using testing::TemporaryFolder;

constexpr const char* kTogether = "diffusion";

void set_option(InProcessJob& job, std::string_view name, std::string_view value) {
  for (int pe = 0; pe < job.num_pes(); ++pe) {
    for (const runtime::ModelOption& option : job.runtime(pe).model<Chares>().options()) {
      if (option.variable != name) continue;
      EXPECT_TRUE(option.set(value));
    }
  }
}

// Sends to others on request.
struct Gossip : Chare<Gossip> {
  void pup(Pup& p) { p | over; }
  void resume_from_sync() override { contribute(1, Reducer::kSum, target_of(over)); }

  void sync_with(double load_s, Future<int> target) {
    set_load_s(load_s);
    over = std::move(target);
    at_sync();
  }
  void tell(std::vector<int> to) {
    for (const int index : to) proxy()[index].send<&Gossip::hear>(std::uint64_t{7});
  }
  void hear(std::uint64_t) {}
  void ask_to_sync(int whom, double load_s, Future<int> target) {
    proxy()[whom].send<&Gossip::sync_with>(load_s, std::move(target));
  }
  void go(int to_pe) { migrate(to_pe); }
  void pin(bool pinned) { set_pinned(pinned); }
  int where_now() { return pe(); }

  Future<int> over;
};

// Random loads, moves, talks and pins of each step.
class Village {
 public:
  Village(Array<Gossip> elements, int num_pes, std::uint64_t seed)
      : elements_(std::move(elements)), random_(seed) {
    snapshot_.num_pes = num_pes;
    snapshot_.background_load_s.assign(static_cast<std::size_t>(num_pes), 0.0);
  }

  // Runs a step. Returns how many elements have moved in it.
  Task<int> step(Runtime& runtime) {
    co_await prepare(runtime);
    auto strategy = balance::make_strategy(kTogether);
    const Placement expected = (*strategy)->place(snapshot_);
    Future<int> over(runtime);
    for (int i = 0; i < count(); ++i) {
      elements_[i].send<&Gossip::sync_with>(snapshot_.objects[static_cast<std::size_t>(i)].load_s, over);
    }
    EXPECT_EQ(co_await over, count());
    const std::vector<int> pes = co_await elements_.call<&Gossip::where_now>();
    EXPECT_EQ(pes, expected);
    int moves = 0;
    for (std::size_t i = 0; i < pes.size(); ++i) moves += pes[i] != snapshot_.objects[i].pe ? 1 : 0;
    co_return moves;
  }

 private:
  int count() const { return static_cast<int>(elements_.collection().shape().size()); }
  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint64_t>(limit)); }

  Task<> prepare(Runtime& runtime) {
    for (int i = 0; i < count(); ++i) {
      co_await elements_[i].call<&Gossip::pin>(false);
      const int to_pe = below(snapshot_.num_pes);
      if (below(4) == 0) co_await elements_[i].call<&Gossip::go>(to_pe);
    }
    co_await runtime.quiescence();
    snapshot_.edges.clear();
    for (int i = 0; i < count(); ++i) {
      std::map<int, std::uint64_t> told;
      std::vector<int> to;
      for (int k = below(8); k > 0; --k) {
        const int other = below(count());
        to.push_back(other);
        if (other != i) ++told[other];
      }
      co_await elements_[i].call<&Gossip::tell>(to);
      for (const auto& [other, times] : told) {
        snapshot_.edges.push_back(
            {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(other), times, 8 * times});
      }
    }
    co_await runtime.quiescence();
    const std::vector<int> pes = co_await elements_.call<&Gossip::where_now>();
    snapshot_.objects.clear();
    for (int i = 0; i < count(); ++i) {
      const bool is_pinned = below(5) == 0;
      co_await elements_[i].call<&Gossip::pin>(is_pinned);
      const double load_s = below(10) == 0 ? 0 : 1 + below(1000) * 0.01;
      snapshot_.objects.push_back(
          {1, static_cast<std::uint64_t>(i), pes[static_cast<std::size_t>(i)], load_s, 0, !is_pinned});
    }
  }

  Array<Gossip> elements_;
  std::mt19937_64 random_;
  Snapshot snapshot_;
};

int moves_of(const char* machine, int num_pes, int count, std::uint64_t seed) {
  SCOPED_TRACE(std::string(machine) + ", " + std::to_string(num_pes) + " PEs, " + std::to_string(count) +
               " elements, seed " + std::to_string(seed));
  int moves = 0;
  InProcessJob job(num_pes, machine);
  use_strategy(job, kTogether);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto elements = Array<Gossip>::create(runtime, {count});
    Village village(elements, num_pes, seed);
    for (int i = 0; i < 3; ++i) moves += co_await village.step(runtime);
  }),
            "");
  return moves;
}

TEST(SyncRounds, ThePlacementIsThatOfOnePeThatKnowsAllLoads) {
  const std::uint64_t seed = std::random_device()();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  int moves = 0;
  for (const int num_pes : {1, 2, 3, 4, 5, 8, 11}) {
    for (const int count : {1, 7, 40}) {
      moves += moves_of("loopback", num_pes, count, seed + static_cast<std::uint64_t>(num_pes * 100 + count));
    }
  }
  moves += moves_of("ucx", 4, 30, seed);
  EXPECT_GT(moves, 20);
}

// With recorded loads one PE decides. It decides the same, so the recording shows what a job without it does.
TEST(SyncRounds, ARecordedStepHasTheSamePlacement) {
  const TemporaryFolder folder;
  const std::string path = folder / "loads";
  InProcessJob job(3);
  use_strategy(job, kTogether);
  set_option(job, "WEFT_LB_RECORD", path);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto elements = Array<Gossip>::create(runtime, {20});
    Village village(elements, 3, 5);
    EXPECT_GT(co_await village.step(runtime), 0);
  }),
            "");
  auto recorded = balance::read_load_file(path + ".1");
  ASSERT_TRUE(recorded.ok()) << recorded.status().to_string();
  EXPECT_EQ(recorded->objects.size(), 20U);
}

// --- What travels

// The messages of load balancing that a PE has sent.
struct SyncBytes final : runtime::Observer {
  void message_sent(const runtime::MessageEvent& event) override {
    if (event.handler != handler || (only_pe >= 0 && event.pe != only_pe)) return;
    if (only_bytes != 0 && event.payload_bytes != only_bytes) return;
    ++messages;
    bytes += event.payload_bytes;
    if (event.pe == 0) bytes_to_0 += event.payload_bytes;
  }
  runtime::HandlerId handler = 0;
  int only_pe = -1;            // the others do not count
  std::size_t only_bytes = 0;  // 0: messages of any size count
  std::size_t messages = 0;
  std::size_t bytes = 0;
  std::size_t bytes_to_0 = 0;
};

// Of a step of four PEs with so many elements each; those of PE 1 have twice the load if `is_uneven`.
SyncBytes sync_bytes_of_step(const char* strategy, int per_pe, bool is_uneven) {
  InProcessJob job(4);
  use_strategy(job, strategy);
  std::vector<SyncBytes> of_pes(4);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4 * per_pe});
    co_await workers.created();
    for (int pe = 0; pe < 4; ++pe) {
      SyncBytes& observer = of_pes[static_cast<std::size_t>(pe)];
      observer.handler = job.runtime(pe).model<Chares>().sync().handler();
      job.runtime(pe).set_observer(&observer);
    }
    std::vector<double> loads;
    for (int i = 0; i < 4 * per_pe; ++i) loads.push_back(is_uneven && i / per_pe == 1 ? 2 : 1);
    co_await step(runtime, workers, loads);
    for (int pe = 0; pe < 4; ++pe) job.runtime(pe).set_observer(nullptr);
  }),
            "");
  SyncBytes sum;
  for (const SyncBytes& one : of_pes) {
    sum.messages += one.messages;
    sum.bytes += one.bytes;
    sum.bytes_to_0 += one.bytes_to_0;
  }
  return sum;
}

TEST(SyncRounds, NoPeGetsTheLoadsOfAllElements) {
  const SyncBytes few = sync_bytes_of_step(kTogether, 10, false);
  const SyncBytes many = sync_bytes_of_step(kTogether, 1000, false);
  EXPECT_EQ(many.messages, few.messages);
  EXPECT_EQ(many.bytes, few.bytes) << "of an even collection PEs tell each other their times only";
  EXPECT_GT(sync_bytes_of_step("greedy", 1000, false).bytes_to_0, 4000 * sizeof(ReportedLoad));
  // PE 1 gives PE 0 and PE 3 some of its elements, PE 2 gets some of theirs.
  const SyncBytes uneven = sync_bytes_of_step(kTogether, 1000, true);
  EXPECT_GT(uneven.bytes, many.bytes);
  EXPECT_LT(uneven.bytes_to_0, 1000 * sizeof(ReportedLoad));
}

// PE 0 believes element 5 to be on its home, PE 2, which passes on what element 0 has sent to it.
TEST(SyncRounds, WhatElementsHaveSentFollowsThoseThatHaveMoved) {
  constexpr std::size_t kBytesOfOneTalk =
      sizeof(BalancingHeader) + 2 * sizeof(std::uint64_t) + sizeof(TalkedTo);
  InProcessJob job(3);
  use_strategy(job, kTogether);
  SyncBytes passed_on;
  passed_on.handler = job.runtime(2).model<Chares>().sync().handler();
  passed_on.only_pe = 1;
  passed_on.only_bytes = kBytesOfOneTalk;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto elements = Array<Gossip>::create(runtime, {6});
    co_await elements[0].call<&Gossip::tell>(list(5));
    co_await elements[5].call<&Gossip::go>(1);
    co_await runtime.quiescence();
    job.runtime(2).set_observer(&passed_on);
    Future<int> over(runtime);
    // PE 0 has 17 more to do than PE 1: it gives element 0, which talks to element 5 there, and not element 1. A call of PE 0
    // to element 5 would tell it where the element is.
    for (int i = 0; i < 5; ++i) {
      elements[i].send<&Gossip::sync_with>(i < 2 ? 10.0 : i == 4 ? 15.0 : 1.0, over);
    }
    elements[3].send<&Gossip::ask_to_sync>(5, 1.0, over);
    EXPECT_EQ(co_await over, 6);
    job.runtime(2).set_observer(nullptr);
    const std::vector<int> pes = co_await elements.call<&Gossip::where_now>();
    EXPECT_EQ(pes[0], 1);
    EXPECT_EQ(pes[1], 0);
    EXPECT_EQ(pes[5], 1);
  }),
            "");
  EXPECT_EQ(passed_on.messages, 1U);
}

// --- Elements that stay

// They are reported as elements that can move.
TEST(SyncRounds, ElementsThatCannotMoveAnyMoreStay) {
  InProcessJob job(2);
  use_strategy(job, kTogether);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {8});
    Future<int> over(runtime);
    for (int i = 4; i < 8; ++i) co_await workers[i].call<&Worker::sync_with>(10.0, over);
    co_await runtime.quiescence();  // PE 1 has reported
    for (int i : {4, 5, 7}) co_await workers[i].call<&Worker::pin>(true);
    auto waiting = workers[6].call<&Worker::wait>();
    co_await workers[6].call<&Worker::call>();  // it has begun to wait
    for (int i = 0; i < 4; ++i) workers[i].send<&Worker::sync_with>(1.0, over);
    EXPECT_EQ(co_await over, 8);
    std::vector<int> pes = co_await workers.call<&Worker::where_now>();
    EXPECT_EQ(pes[4] + pes[5] + pes[6] + pes[7], 4) << "some of them were to move";
    workers[6].send<&Worker::open>();
    co_await waiting;
    for (int i : {4, 5}) co_await workers[i].call<&Worker::pin>(false);
    const std::vector<double> loads{1, 1, 1, 1, 10, 10, 10, 10};
    co_await step(runtime, workers, loads);
    pes = co_await workers.call<&Worker::where_now>();
    EXPECT_EQ(pes[7], 1);
    EXPECT_EQ(pes[4] + pes[5] + pes[6], 1);
  }),
            "");
}

TEST(SyncRounds, ACollectionMayBeDestroyedAtEachPointOfAStep) {
  for (int turns = 0; turns < 120; ++turns) {
    alive = 0;
    InProcessJob job(3);
    use_strategy(job, kTogether);
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto workers = Array<Worker>::create(runtime, {9});
      for (int i = 0; i < 9; ++i) co_await workers[i].call<&Worker::set_load>(i < 3 ? 10 : 1);
      co_await workers.call<&Worker::sync_alone>();
      for (int i = 0; i < turns; ++i) co_await yield_now(runtime);
      co_await workers.destroy();
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }),
              "");
  }
}

// PE 0 works for another collection. It gives its elements away, and gets none back while it has none.
TEST(SyncRounds, BackgroundLoadOfEachPeCounts) {
  InProcessJob job(2);
  use_strategy(job, kTogether);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto others = Array<Worker>::create(runtime, {2});
    auto workers = Array<Worker>::create(runtime, {8});
    co_await workers.created();
    for (const bool is_busy : {true, true, false}) {
      if (is_busy) co_await others[0].call<&Worker::spin>(60'000);
      for (int i = 0; i < 8; ++i) co_await workers[i].call<&Worker::spin>(1000);
      Future<int> over(runtime);
      workers.send<&Worker::sync>(over);
      EXPECT_EQ(co_await over, 8);
      int on_pe_1 = 0;
      for (const int pe : co_await workers.call<&Worker::where_now>()) on_pe_1 += pe;
      if (is_busy) {
        EXPECT_EQ(on_pe_1, 8);
      } else {
        EXPECT_LT(on_pe_1, 8);
      }
    }
  }),
            "");
}

// --- What peers claim

// Sends a message from one PE to the other one before any element waits. Elements 0 and 1 are on PE 0, 2 and 3 on PE 1.
template <class... Values>
std::string refusal_of(int from_pe, std::uint64_t step, SyncKind kind, const Values&... values) {
  InProcessJob job(2);
  use_strategy(job, kTogether);
  return job.run([&](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    co_await workers.created();
    Runtime& from = job.runtime(from_pe);
    const BalancingHeader header{workers.collection().id(), step, static_cast<std::uint32_t>(kind), 0};
    from.send(1 - from_pe,
              runtime::Message::pack(from, from.model<Chares>().sync().handler(), header, values...));
    co_await runtime.quiescence();
  });
}

using Numbers = std::vector<std::uint64_t>;
using Talks = std::vector<TalkedTo>;
constexpr std::uint64_t kNone = 0;
constexpr std::uint64_t kOne = 1;
constexpr std::uint64_t kTwo = 2;

TEST(SyncRounds, ChecksWhatIsCounted) {
  EXPECT_EQ(refusal_of(1, 0, SyncKind::kWaiting, WaitingElements{2, 0, 1, 0}), "");
  EXPECT_TRUE(
      says(refusal_of(1, 0, SyncKind::kWaiting, WaitingElements{5, 0, 1, 0}), "5 elements more wait"));
  EXPECT_TRUE(
      says(refusal_of(1, 1, SyncKind::kWaiting, WaitingElements{2, 0, 1, 0}), "a count of step 1, not 0"));
  EXPECT_TRUE(says(refusal_of(0, 0, SyncKind::kWaiting, WaitingElements{2, 0, 1, 0}), "another PE counts"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kWaiting, kOne), "bytes"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kReady), "0 of 4 elements wait"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kOver, PeOutcome{}), "0 of 2 PEs were ready"));
}

TEST(SyncRounds, ChecksTheMessagesOfTheCountingPe) {
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kBegin, kNone, kNone, Pace()), "another PE counts"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kRounds), "another PE counts"));
  EXPECT_TRUE(says(refusal_of(0, 0, SyncKind::kBegin, kTwo, kNone, Pace()), "begins with flags of 2 and 0"));
  EXPECT_TRUE(says(refusal_of(0, 0, SyncKind::kBegin, kNone, kNone, Pace{1, -1, 1}), "after -1 s"));
  EXPECT_TRUE(
      says(refusal_of(0, 0, SyncKind::kBegin, kNone, kNone, Pace()), "an element has not been reported"));
  EXPECT_TRUE(says(refusal_of(0, 0, SyncKind::kRounds), "this PE is not ready"));
}

TEST(SyncRounds, ChecksWhatIsSaidOfElements) {
  const auto refusal = [](std::uint64_t origin, const Talks& talks) {
    return refusal_of(1, 0, SyncKind::kTalked, origin, talks);
  };
  EXPECT_TRUE(says(refusal(1, {}), "nothing was sent"));
  for (const Talks& wrong : {Talks{{4, 2, 8}}, Talks{{0, 4, 8}}, Talks{{0, 0, 8}}, Talks{{0, 2, ~kNone}},
                             Talks{{0, 2, 8}, {0, 2, 8}}, Talks{{1, 2, 8}, {0, 2, 8}}}) {
    EXPECT_TRUE(says(refusal(1, wrong), "bytes to element"));
  }
  EXPECT_TRUE(says(refusal(2, {{0, 2, 8}}), "elements of PE 2"));
  EXPECT_TRUE(
      says(refusal(1, {{0, 2, 8}}), "element 2 of PE 1 has sent to element 0, and does not wait there"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kPlaces, Numbers{2}), "for which nothing has asked"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kPlaces, Numbers{}), "no element is there"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kTaken, Numbers{0}), "that were not given"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kTaken, Numbers{}), "that were not given"));
}

TEST(SyncRounds, ChecksWhatPartnersSend) {
  const std::vector<balance::GivenObject> objects;
  const std::vector<balance::GivenEdge> edges;
  EXPECT_EQ(refusal_of(1, 0, SyncKind::kState, kNone, 1.0, 1.0), "");  // early
  EXPECT_EQ(refusal_of(1, 0, SyncKind::kProposal, kTwo, objects, edges), "");
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kState, kOne, 1.0, 1.0), "not the partner"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kState, std::uint64_t{8}, 1.0, 1.0), "round 8 of 8"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kState, kNone, 1.0, 0.0), "has speed 0"));
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kState, kNone, kNoNumber, 1.0), "it takes nan s"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kProposal, ~kNone, objects, edges), "over here"));
  EXPECT_TRUE(says(refusal_of(1, 0, SyncKind::kProposal, kNone, ~kNone), "bytes"));
}

// The wrong message comes before the step. Those of the step follow.
TEST(SyncRounds, RefusesWhatDoesNotFitTheStep) {
  const auto refusal = [](SyncKind kind, const auto&... values) {
    InProcessJob job(2);
    use_strategy(job, kTogether);
    return job.run([&](Runtime& runtime) -> Task<> {
      auto workers = Array<Worker>::create(runtime, {4});
      co_await workers.created();
      Runtime& from = job.runtime(1);
      const BalancingHeader header{workers.collection().id(), 0, static_cast<std::uint32_t>(kind), 0};
      from.send(0, runtime::Message::pack(from, from.model<Chares>().sync().handler(), header, values...));
      co_await runtime.quiescence();
      const std::vector<double> loads{1, 1, 10, 10};
      co_await step(runtime, workers, loads);
    });
  };
  const std::vector<balance::GivenEdge> edges;
  EXPECT_TRUE(says(refusal(SyncKind::kState, kNone, 20.0, 1.0), "tells its time in round 0 twice"));
  EXPECT_TRUE(
      says(refusal(SyncKind::kProposal, kNone, std::vector<balance::GivenObject>{{2, 10, 1, 0}}, edges),
           "does not fit on PE 0"));
  // PE 0 finds in the round that it has this object.
  EXPECT_TRUE(
      says(refusal(SyncKind::kProposal, kNone, std::vector<balance::GivenObject>{{0, 10, 1, 0}}, edges),
           "object 0 comes to PE 0, which has it"));
}

TEST(SyncRounds, AllPesDecideInTheSameWay) {
  constexpr const char* kAdvice = "are WEFT_LB and WEFT_LB_RECORD the same on each PE?";
  EXPECT_TRUE(says(refusal_of(0, 0, SyncKind::kPlan, kNone, Numbers{}), "of a step that one PE decides"));
  InProcessJob job(2);
  use_strategy(job, "greedy");
  for (const runtime::ModelOption& option : job.runtime(1).model<Chares>().options()) {
    if (option.variable != "WEFT_LB") continue;
    EXPECT_TRUE(option.set(kTogether));
  }
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    const std::vector<double> loads{1, 1, 10, 10};
    co_await step(runtime, workers, loads);
  });
  EXPECT_TRUE(says(failure, "of a step that the PEs decide together")) << failure;
  EXPECT_TRUE(says(failure, kAdvice)) << failure;
  const auto facts = [&job](int pe) { return job.runtime(pe).model<Chares>().fingerprint(); };
  EXPECT_NE(facts(0), facts(1)) << "a job of several processes finds it when it starts";
}

}  // namespace
}  // namespace weft::chare::sync_testing
