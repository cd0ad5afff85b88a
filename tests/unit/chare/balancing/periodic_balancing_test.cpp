#include "models/chare/periodic/periodic_balancing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/balance/register_strategy.h"
#include "weft/weft.h"

#include "balance/strategy_table.h"
#include "models/chare/balancing/decision.h"
#include "models/chare/periodic/round.h"
#include "tests/unit/chare/saved_chares.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

// Moves whenever the load balancer wants it. Hears numbered calls.
struct Roamer : Chare<Roamer> {
  static constexpr bool kBalancePeriodically = true;
  Roamer() { ++alive; }
  ~Roamer() override { --alive; }
  void pup(Pup& p) { p | heard | arrivals | cargo; }
  void migrated() override { ++arrivals; }

  void load_with(double load_s) { set_load_s(load_s); }
  void hear(int number) {
    if (static_cast<int>(heard.size()) <= number) heard.resize(static_cast<std::size_t>(number) + 1);
    ++heard[static_cast<std::size_t>(number)];
  }
  // How many of the calls have come, -1 if one has come twice.
  int num_heard() {
    if (std::ranges::any_of(heard, [](int times) { return times > 1; })) return -1;
    return static_cast<int>(std::ranges::count(heard, 1));
  }
  int where_now() { return pe(); }
  int times_moved() { return arrivals; }
  void pin(bool pinned) { set_pinned(pinned); }
  void go(int to_pe) { migrate(to_pe); }
  double load() { return load_s(); }
  void reach_sync_point() { at_sync(); }
  Task<> wait() {
    gate = Future<>(runtime());
    is_waiting = true;
    co_await gate;
    is_waiting = false;
  }
  bool waits() { return is_waiting; }
  void open() { gate.set(); }
  void end() { remove_self(); }

  Future<> gate;
  bool is_waiting = false;
  std::vector<int> heard;
  int arrivals = 0;
  std::vector<double> cargo = std::vector<double>(100);
};

void set_option(InProcessJob& job, std::string_view variable, std::string_view value) {
  for (int pe = 0; pe < job.num_pes(); ++pe) {
    for (const runtime::ModelOption& option : job.runtime(pe).model<Chares>().options()) {
      if (option.variable != variable) continue;
      EXPECT_TRUE(option.set(value));
    }
  }
}

// Ends a loop that waits for something which does not come. Far longer than any of them takes.
class Deadline {
 public:
  bool has_passed() const {
    if (std::chrono::steady_clock::now() < end_) return false;
    ADD_FAILURE() << "what the test waits for has not come in 100 s";
    return true;
  }

 private:
  std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + std::chrono::seconds(100);
};

void balance_with(InProcessJob& job, std::string_view strategy) {
  use_strategy(job, strategy);
  set_option(job, "WEFT_LB_PERIOD", "0.001");
}

Task<int> moves_of(Array<Roamer> roamers) {
  const std::vector<int> moves = co_await roamers.call<&Roamer::times_moved>();
  co_return std::accumulate(moves.begin(), moves.end(), 0);
}

TEST(PeriodicBalancing, BalancesARampWithoutSyncPoints) {
  for (const char* machine : {"loopback", "ucx"}) {
    alive = 0;
    InProcessJob job(2, machine);
    balance_with(job, "greedy_refine");
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      constexpr int kElements = 32;
      auto roamers = Array<Roamer>::create(runtime, {kElements});
      double sum = 0;
      for (int i = 0; i < kElements; ++i) {
        roamers[i].send<&Roamer::load_with>(1 + 9.0 * i / (kElements - 1));
        sum += 1 + 9.0 * i / (kElements - 1);
      }
      double imbalance = 1;
      const Deadline deadline;
      while (imbalance >= 0.05 && !deadline.has_passed()) {
        const std::vector<int> pes = co_await roamers.call<&Roamer::where_now>();
        double first = 0;
        for (int i = 0; i < kElements; ++i) first += pes[i] == 0 ? 1 + 9.0 * i / (kElements - 1) : 0;
        imbalance = std::max(first, sum - first) / (sum / 2) - 1;
      }
      const int moves = co_await moves_of(roamers);
      EXPECT_GT(moves, 0);
      EXPECT_LT(moves, kElements);
      EXPECT_EQ(alive, kElements);
      co_await roamers.destroy();
    }),
              "");
  }
}

TEST(PeriodicBalancing, CallsReachElementsThatMoveOnce) {
  for (const char* strategy : {"rotate", "random"}) {
    InProcessJob job(3);
    balance_with(job, strategy);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      constexpr int kElements = 9;
      auto roamers = Array<Roamer>::create(runtime, {kElements});
      int number = 0;
      const Deadline deadline;
      for (int moves = 0; moves < 300 && !deadline.has_passed(); moves = co_await moves_of(roamers)) {
        for (int burst = 0; burst < 50; ++burst, ++number) {
          if (burst % 5 == 0) {
            roamers.send<&Roamer::hear>(number);
          } else {
            for (int i = 0; i < kElements; ++i) roamers[i].send<&Roamer::hear>(number);
          }
        }
        if (number % 100 == 0) co_await runtime.quiescence();
      }
      co_await runtime.quiescence();
      EXPECT_EQ((co_await roamers.call<&Roamer::num_heard>()), std::vector<int>(kElements, number));
    }),
              "");
  }
}

TEST(PeriodicBalancing, PinnedAndSuspendedElementsStay) {
  InProcessJob job(2);
  balance_with(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {4});
    co_await roamers[0].call<&Roamer::pin>(true);
    auto waiting = roamers[1].call<&Roamer::wait>();
    const Deadline deadline;
    while (!co_await roamers[1].call<&Roamer::waits>() && !deadline.has_passed()) {
    }
    const int first = co_await roamers[0].call<&Roamer::times_moved>();
    const int second = co_await roamers[1].call<&Roamer::times_moved>();
    while (co_await roamers[3].call<&Roamer::times_moved>() < 20 && !deadline.has_passed()) {
    }
    EXPECT_EQ(co_await roamers[0].call<&Roamer::times_moved>(), first);
    EXPECT_EQ(co_await roamers[1].call<&Roamer::times_moved>(), second);
    roamers[1].send<&Roamer::open>();
    co_await waiting;
    co_await roamers[0].call<&Roamer::pin>(false);
    for (const int i : {0, 1}) {
      while (co_await roamers[i].call<&Roamer::times_moved>() < 3 && !deadline.has_passed()) {
      }
    }
  }),
            "");
}

TEST(PeriodicBalancing, TheProgramMayMoveElementsToo) {
  InProcessJob job(3);
  balance_with(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {6});
    int number = 0;
    for (; number < 600; ++number) {
      roamers[number % 6].send<&Roamer::go>(number % 3);
      for (int i = 0; i < 6; ++i) roamers[i].send<&Roamer::hear>(number);
      if (number % 10 == 0) co_await runtime.quiescence();
    }
    co_await runtime.quiescence();
    EXPECT_EQ((co_await roamers.call<&Roamer::num_heard>()), std::vector<int>(6, number));
  }),
            "");
}

TEST(PeriodicBalancing, WithoutAPeriodNothingMovesAndNothingIsMeasured) {
  InProcessJob job(2);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {4});
    co_await roamers.call<&Roamer::load_with>(3.0);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(co_await roamers[3].call<&Roamer::load>(), 0);
    EXPECT_EQ(co_await moves_of(roamers), 0);
  }),
            "");
}

TEST(PeriodicBalancing, ThereAreNoSyncPoints) {
  InProcessJob job(2);
  balance_with(job, "none");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {4});
    EXPECT_TRUE(says(co_await error_of(roamers[3].call<&Roamer::reach_sync_point>()),
                     "its class does not override resume_from_sync()"));
    co_await roamers[3].call<&Roamer::load_with>(4.5);
    EXPECT_EQ(co_await roamers[3].call<&Roamer::load>(), 4.5);
  }),
            "");
}

TEST(PeriodicBalancing, CollectionsEndDuringRounds) {
  alive = 0;
  InProcessJob job(3);
  balance_with(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const Deadline deadline;
    for (int generation = 0; generation < 30; ++generation) {
      auto roamers = Array<Roamer>::create(runtime, {12});
      auto others = Array<Roamer>::create(runtime, {5});
      while (co_await roamers[0].call<&Roamer::times_moved>() < generation % 3 && !deadline.has_passed()) {
      }
      co_await roamers.destroy();
      co_await others.destroy();
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }
  }),
            "");
}

TEST(PeriodicBalancing, SparseElementsMoveAndEnd) {
  alive = 0;
  InProcessJob job(3);
  balance_with(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create_sparse(runtime, 100);
    const Deadline deadline;
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < 10; ++i) co_await roamers.insert(7 * i);
      EXPECT_EQ(alive, 10);
      while (co_await roamers[7].call<&Roamer::times_moved>() == 0 && !deadline.has_passed()) {
      }
      for (int i = 0; i < 10; ++i) roamers[7 * i].send<&Roamer::hear>(0);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(co_await roamers[7 * i].call<&Roamer::num_heard>(), 1);
      for (int i = 0; i < 10; ++i) {
        if (i % 2 == 0) {
          roamers[7 * i].send<&Roamer::end>();
        } else {
          co_await roamers[7 * i].remove();
        }
      }
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }
  }),
            "");
}

// Rounds go on while checkpoints are made: a checkpoint has each element once.
TEST(PeriodicBalancing, CheckpointsHaveEachElementOnce) {
  const saved::TemporaryFolder folder;
  for (const int num_pes : {3, 2}) {
    InProcessJob job(num_pes);
    balance_with(job, "rotate");
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      Array<Roamer> roamers;
      const Deadline deadline;
      if (num_pes == 2) {
        co_await restore(runtime, folder.path(), roamers);
        EXPECT_EQ((co_await roamers.call<&Roamer::num_heard>()), std::vector<int>(20, 30));
        while (co_await moves_of(roamers) < 1000 && !deadline.has_passed()) {
        }
        co_return;
      }
      roamers = Array<Roamer>::create(runtime, {20});
      for (int number = 0; number < 30; ++number) {
        roamers.send<&Roamer::hear>(number);
        const int moves = co_await moves_of(roamers);
        while (co_await moves_of(roamers) == moves && !deadline.has_passed()) {
        }
        co_await checkpoint(runtime, folder.path(), roamers);
      }
    }),
              "");
  }
}

// A strategy of the program reads the first object.
balance::Placement first_decides(const balance::Snapshot& snapshot) {
  return balance::Placement(snapshot.objects.size(), snapshot.objects.at(0).pe);
}

TEST(PeriodicBalancing, StrategiesGetNoSnapshotWithoutElements) {
  balance::register_strategy("first_decides", &first_decides);
  {
    InProcessJob job(2);
    balance_with(job, "first_decides");
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto none = Array<Roamer>::create_sparse(runtime, 100);
      auto some = Array<Roamer>::create(runtime, {4});
      const Deadline deadline;
      // Rounds of both collections begin at the same time.
      while (co_await moves_of(some) == 0 && !deadline.has_passed()) {
      }
      co_await none.insert(3);
    }),
              "");
  }
  balance::unregister_strategy("first_decides");
}

// A round without elements ends at once, and the next one is a period away.
TEST(PeriodicBalancing, ElementsAreInsertedAfterRoundsWithoutAny) {
  InProcessJob job(2);
  balance_with(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto empty = Array<Roamer>::create_sparse(runtime, 100);
    auto others = Array<Roamer>::create(runtime, {4});
    const Deadline deadline;
    // Rounds of both collections begin at the same time.
    while (co_await moves_of(others) < 20 && !deadline.has_passed()) {
    }
    co_await empty.insert(3);
    while (co_await empty[3].call<&Roamer::times_moved>() == 0 && !deadline.has_passed()) {
    }
  }),
            "");
}

// The PE is lost after the plan was made, and before it is carried out.
TEST(PeriodicBalancing, ElementsStayThatWereToMoveToAPeThatIsLost) {
  InProcessJob job = InProcessJob::outliving_losses(3);
  bool are_made = false;
  bool is_planned = false;
  balance::register_strategy("to_the_last", [&](const balance::Snapshot& snapshot) {
    if (!are_made) return balance::present_placement(snapshot);
    if (!std::exchange(is_planned, true)) lose_at_once(job, 2);
    return balance::Placement(snapshot.objects.size(), 2);
  });
  balance_with(job, "to_the_last");
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {3});
    co_await roamers.created();
    are_made = true;
    const Deadline deadline;
    while (!is_planned && !deadline.has_passed()) co_await runtime.sleep(0.001);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(co_await roamers[i % 2].call<&Roamer::where_now>(), i % 2);
    for (const int i : {0, 1}) EXPECT_EQ(co_await roamers[i].call<&Roamer::times_moved>(), 0);
  }),
            "");
  balance::unregister_strategy("to_the_last");
}

// --- What peers claim

struct WireHeader {
  std::uint64_t collection;
  std::uint64_t round;
  std::uint32_t kind;
  std::uint32_t reserved;
};
runtime::HandlerId handler_of(Runtime& runtime) { return runtime.model<Chares>().periodic().handler(); }
enum WireKind : std::uint32_t { kAsk, kLoads, kPlan, kDone, kNoSuchKind };

// Sends a message from PE 1 to PE 0, which decides, or the other way round.
template <class... Values>
std::string failure_of(int to_pe, std::uint32_t kind, const Values&... values) {
  InProcessJob job(2);
  use_strategy(job, "none");
  set_option(job, "WEFT_LB_PERIOD", "1e6");
  return job.run([&](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {4});
    co_await roamers.created();
    Runtime& from = job.runtime(1 - to_pe);
    from.send(to_pe, runtime::Message::pack(from, handler_of(from),
                                            WireHeader{roamers.collection().id(), 1, kind, 0}, values...));
    co_await runtime.quiescence();
  });
}

// A checkpoint compares the counts of messages, and elements must not move while it is written.
TEST(PeriodicBalancing, APlanThatComesToAPeThatHoldsIsGivenUp) {
  InProcessJob job(2);
  use_strategy(job, "none");
  set_option(job, "WEFT_LB_PERIOD", "1e6");
  const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    auto roamers = Array<Roamer>::create(runtime, {4});
    co_await roamers.created();
    co_await runtime.quiescence();
    Runtime& peer = job.runtime(1);
    auto plan = runtime::Message::pack(runtime, handler_of(runtime),
                                       WireHeader{roamers.collection().id(), 1, kPlan, 0},
                                       std::vector<PlannedMove>{{3, 0}});
    plan->envelope().flags |= runtime::kControlFlag;
    peer.model<Chares>().periodic().hold();
    const std::uint64_t sent = peer.sent();
    runtime.send(1, std::move(plan));
    co_await runtime.sleep(0.01);
    EXPECT_EQ(peer.sent(), sent);
  });
  EXPECT_TRUE(
      says(failure, "no moves of round 1 are under way"));  // the answer to PE 0, which has planned nothing
}

TEST(PeriodicBalancing, ChecksWhatPeersSend) {
  using Loads = std::vector<PeriodicLoad>;
  using Moves = std::vector<PlannedMove>;
  const std::uint64_t none = 0;
  EXPECT_TRUE(says(failure_of(0, kLoads, 0.5, none, Loads{}), "for which nothing has asked"));
  EXPECT_TRUE(says(failure_of(1, kLoads, 0.5, none, Loads{}), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kAsk), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kPlan, Moves{}), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kDone, none, none), "no moves of round 1 are under way"));
  EXPECT_TRUE(says(failure_of(0, kNoSuchKind), "there is no kind 4"));
  EXPECT_TRUE(says(failure_of(1, kPlan, Moves{{4, 0}}), "element 4 is to move to PE 0"));
  EXPECT_TRUE(says(failure_of(1, kPlan, Moves{{3, 2}}), "element 3 is to move to PE 2"));
  EXPECT_TRUE(says(failure_of(1, kPlan, Moves{{3, 1}}), "element 3 is to move to PE 1"));
  EXPECT_TRUE(says(failure_of(1, kPlan, std::uint64_t{1} << 60), "bytes"));
  // Answers for which nothing has asked, too.
  EXPECT_TRUE(says(failure_of(1, kAsk), "for which nothing has asked"));
  EXPECT_TRUE(says(failure_of(1, kPlan, Moves{{3, 0}}), "no moves of round 1 are under way"));
}

}  // namespace
}  // namespace weft::chare::sync_testing
