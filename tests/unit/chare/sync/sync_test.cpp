#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/balance/register_strategy.h"
#include "weft/weft.h"

#include "balance/strategy_table.h"
#include "runtime/processor_wait.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

TEST(Sync, ElementsThatCannotMoveStay) {
  InProcessJob job(3);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {6});
    const std::vector<int> before = co_await workers.call<&Worker::where_now>();
    co_await workers[0].call<&Worker::pin>(true);
    auto waiting = workers[1].call<&Worker::wait>();
    Future<int> over(runtime);
    // The coroutine that calls at_sync() has not ended when its element is reported.
    auto caller = workers[2].call<&Worker::sync_and_wait>(over);
    for (int i : {0, 1, 3, 4, 5}) workers[i].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 6);
    const std::vector<int> after = co_await workers.call<&Worker::where_now>();
    for (int i = 0; i < 6; ++i) EXPECT_EQ(after[i], i < 3 ? before[i] : (before[i] + 1) % 3) << i;
    for (int i : {1, 2}) workers[i].send<&Worker::open>();
    co_await waiting;
    co_await caller;
    co_await workers[0].call<&Worker::pin>(false);
    co_await step(runtime, workers, std::vector<double>(6, 1.0));
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(co_await workers[i].call<&Worker::where_now>(), (before[i] + 1) % 3);
    }
  }),
            "");
}

// The PE is lost after the decision, and before the moves. The step is never over, because a sync point needs all PEs.
TEST(Sync, ElementsStayThatWereToMoveToAPeThatIsLost) {
  InProcessJob job = InProcessJob::outliving_losses(3);
  bool is_planned = false;
  balance::register_strategy("to_the_last", [&](const balance::Snapshot& snapshot) {
    is_planned = true;
    lose_at_once(job, 2);
    return balance::Placement(snapshot.objects.size(), 2);
  });
  use_strategy(job, "to_the_last");
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {3});
    Future<int> over(runtime);
    for (int i = 0; i < 3; ++i) workers[i].send<&Worker::sync>(over);
    while (!is_planned) co_await runtime.sleep(0.001);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(co_await workers[i % 2].call<&Worker::where_now>(), i % 2);
  }),
            "");
  balance::unregister_strategy("to_the_last");
}

// It is reported as one that can move, and is pinned before the decision.
TEST(Sync, AnElementThatCannotMoveAnyMoreStays) {
  InProcessJob job(2);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    Future<int> over(runtime);
    for (int i : {2, 3}) co_await workers[i].call<&Worker::sync>(over);
    co_await runtime.quiescence();  // PE 1 has reported
    co_await workers[2].call<&Worker::pin>(true);
    auto waiting = workers[3].call<&Worker::wait>();
    co_await workers[3].call<&Worker::call>();  // it has begun to wait
    for (int i : {0, 1}) workers[i].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
    EXPECT_EQ(co_await workers.call<&Worker::where_now>(), list(1, 1, 1, 1));
    workers[3].send<&Worker::open>();
    co_await waiting;
    co_await step(runtime, workers, std::vector<double>(4, 1.0));
    EXPECT_EQ(co_await workers.call<&Worker::where_now>(), list(0, 0, 1, 0));
  }),
            "");
}

// The pin cancels the move, and the element then waits where it is.
TEST(Sync, AnElementThatIsPinnedAfterItsMoveWasAskedForReachesTheSyncPoint) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    Future<int> over(runtime);
    co_await workers[0].call<&Worker::go_sync_and_pin>(1, over);
    for (int i : {1, 2, 3}) workers[i].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
    EXPECT_EQ(co_await workers[0].call<&Worker::where_now>(), 0);
  }),
            "");
}

TEST(Sync, CallsRunWhileElementsWait) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    Future<int> over(runtime);
    for (int i : {0, 1, 2}) co_await workers[i].call<&Worker::sync>(over);
    for (int i = 0; i < 3; ++i) workers.send<&Worker::call>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::num_calls>(), list(3, 3, 3, 3));
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(0, 0, 0, 0));
    workers[3].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
  }),
            "");
}

// Elements of PEs that wait, on PEs that have reported, and on PEs without elements.
TEST(Sync, ElementsMoveBetweenSyncPoints) {
  for (int num_pes : {2, 4}) {
    InProcessJob job(num_pes);
    use_strategy(job, "rotate");
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      constexpr int kElements = 6;
      auto workers = Array<Worker>::create(runtime, {kElements});
      for (int round = 0; round < 30; ++round) {
        Future<int> over(runtime);
        for (int i = 0; i < kElements; ++i) {
          // All to one PE now and then.
          const int to_pe = round % 3 == 0 ? round / 3 % num_pes : (i * 5 + round) % num_pes;
          if ((i + round) % 2 == 0) {
            workers[i].send<&Worker::go_and_sync>(to_pe, over);
          } else {
            workers[i].send<&Worker::go>(to_pe);
            workers[i].send<&Worker::sync>(over);
          }
          if (round % 4 == 0) co_await runtime.quiescence();  // the others have reported
        }
        EXPECT_EQ(co_await over, kElements);
        for (int resumed : co_await workers.call<&Worker::times_resumed>()) EXPECT_EQ(resumed, round + 1);
      }
    }),
              "");
  }
}

TEST(Sync, RefusesMovesAndASecondSyncWhileAnElementWaits) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {2});
    Future<int> over(runtime);
    co_await workers[0].call<&Worker::sync>(over);
    EXPECT_TRUE(says(co_await error_of(workers[0].call<&Worker::go>(1)), "it waits at a sync point"));
    EXPECT_TRUE(says(co_await error_of(workers[0].call<&Worker::sync_alone>()), "it waits at one already"));
    workers[1].send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 2);
    co_await workers[0].call<&Worker::go>(1);
    EXPECT_EQ(co_await workers[0].call<&Worker::where_now>(), 1);
    for (double load_s : {-1.0, 2e12, std::numeric_limits<double>::quiet_NaN()}) {
      EXPECT_TRUE(says(co_await error_of(workers[0].call<&Worker::set_load>(load_s)), "give 0 to 1"));
    }
  }),
            "");
}

// A job whose class is not measured does not ask the system.
TEST(Sync, MeasuredTimesLeaveOutWaitsForAProcessorUnlessTheOptionSaysWall) {
  const bool is_known = runtime::ProcessorWait::open() != nullptr;
  for (const char* clock : {"running", "wall", "the default"}) {
    SCOPED_TRACE(clock);
    InProcessJob job(2);
    for (int pe = 0; pe < 2; ++pe) {
      for (const runtime::ModelOption& option : job.runtime(pe).model<Chares>().options()) {
        if (option.variable != "WEFT_LB_CLOCK") continue;
        EXPECT_EQ(option.set(clock), clock != std::string("the default"));
      }
    }
    const bool leaves_out = is_known && clock != std::string("wall");
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      EXPECT_FALSE(runtime.meter().leaves_out_waits());
      auto workers = Array<Worker>::create(runtime, {4});
      for (int i = 0; i < 4; ++i) co_await workers[i].call<&Worker::spin>(1000);
      for (int pe = 0; pe < 2; ++pe) EXPECT_EQ(job.runtime(pe).meter().leaves_out_waits(), leaves_out);
      co_await step(runtime, workers, std::vector<double>(4, 1.0));
    }),
              "");
  }
}

// --- Other classes

struct Unmeasured : Chare<Unmeasured> {
  bool is_measured() { return load() != nullptr || load_s() != 0; }
  void sync() { at_sync(); }
  void set_load() { set_load_s(1); }
};

struct InConstructor : Chare<InConstructor> {
  InConstructor() { at_sync(); }
  void resume_from_sync() override {}
};

TEST(Sync, RefusesAClassThatIsNotResumed) {
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto elements = Array<Unmeasured>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(elements[1].call<&Unmeasured::sync>()),
                     "does not override resume_from_sync()"));
    EXPECT_TRUE(says(co_await error_of(elements[1].call<&Unmeasured::set_load>()), "has no load"));
    EXPECT_FALSE(co_await elements[1].call<&Unmeasured::is_measured>());
    auto early = Array<InConstructor>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(early.created()), "after the constructor"));
  }),
            "");
}

template <class T>
struct Still : Chare<T> {
  void sync(Future<int> target) {
    over = std::move(target);
    this->set_load_s(this->linear_index());
    this->at_sync();
  }
  void resume_from_sync() override { this->contribute(1, Reducer::kSum, target_of(over)); }
  int where_now() { return this->pe(); }
  Future<int> over;
};
struct WithoutPup : Still<WithoutPup> {};
struct OfGroup : Still<OfGroup> {
  void pup(Pup& p) { p | over; }
};

TEST(Sync, NothingOfAGroupOrOfAClassWithoutPupMoves) {
  InProcessJob job(3);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto still = Array<WithoutPup>::create(runtime, {6});
    auto group = Group<OfGroup>::create(runtime);
    for (int round = 0; round < 3; ++round) {
      Future<int> over(runtime);
      Future<int> group_over(runtime);
      still.send<&WithoutPup::sync>(over);
      group.send<&OfGroup::sync>(group_over);
      EXPECT_EQ(co_await over, 6);
      EXPECT_EQ(co_await group_over, 3);
      EXPECT_EQ(co_await still.call<&WithoutPup::where_now>(), list(0, 0, 1, 1, 2, 2));
      EXPECT_EQ(co_await group.call<&OfGroup::where_now>(), list(0, 1, 2));
    }
  }),
            "");
}

// It has a channel to its neighbour from the start. The override is not public.
struct Linked : Chare<Linked> {
  void pup(Pup& p) { p | over; }
  void link() { channel.emplace(*this, proxy()[1 - static_cast<int>(linear_index())]); }
  void sync(Future<int> target) {
    over = std::move(target);
    at_sync();
  }
  int where_now() { return pe(); }
  Future<int> over;

 private:
  void resume_from_sync() override { contribute(1, Reducer::kSum, target_of(over)); }
  std::optional<channel::Channel> channel;
};

TEST(Sync, ElementsWithChannelsMove) {
  InProcessJob job(2);
  use_strategy(job, "rotate");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto linked = Array<Linked>::create(runtime, {4});
    const std::vector<int> before = co_await linked.call<&Linked::where_now>();
    for (int i : {0, 1}) co_await linked[i].call<&Linked::link>();
    Future<int> over(runtime);
    linked.send<&Linked::sync>(over);
    EXPECT_EQ(co_await over, 4);
    const std::vector<int> after = co_await linked.call<&Linked::where_now>();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(after[i], 1 - before[i]) << i;
  }),
            "");
}

struct Failing : Still<Failing> {
  void resume_from_sync() override { throw std::runtime_error("no way on"); }
};

TEST(Sync, AnExceptionInResumeFromSyncEndsTheJobByName) {
  InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto failing = Array<Failing>::create(runtime, {2});
    failing.send<&Failing::sync>(Future<int>(runtime));
    co_await Future<>(runtime);
  });
  EXPECT_TRUE(says(failure, "in resume_from_sync()")) << failure;
  EXPECT_TRUE(says(failure, "no way on")) << failure;
}

// --- The measured load

TEST(Sync, MeasuresMethodsAndCoroutinesAndTheLoadMovesAlong) {
  InProcessJob job(2);
  use_strategy(job, "none");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {2});
    const auto began = std::chrono::steady_clock::now();
    // The method that asks is still running.
    EXPECT_EQ(co_await workers[0].call<&Worker::spin>(2000), 0);
    EXPECT_GE(co_await workers[0].call<&Worker::load>(), 2e-3);
    EXPECT_EQ(co_await workers[1].call<&Worker::load>(), 0);
    auto spinning = workers[0].call<&Worker::spin_twice>(1000);
    co_await workers[1].call<&Worker::spin>(3000);
    workers[0].send<&Worker::open>();
    co_await spinning;
    co_await workers[0].call<&Worker::go>(1);
    const double load_s = co_await workers[0].call<&Worker::load>();
    EXPECT_GE(load_s, 4e-3);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
    EXPECT_LE(load_s + co_await workers[1].call<&Worker::load>(), elapsed.count());
    co_await workers[0].call<&Worker::set_load>(0.5);
    EXPECT_EQ(co_await workers[0].call<&Worker::load>(), 0.5);
    co_await workers[0].call<&Worker::go>(0);
    EXPECT_EQ(co_await workers[0].call<&Worker::load>(), 0.5);
    EXPECT_EQ(co_await workers[0].call<&Worker::where_now>(), 0);
  }),
            "");
}

TEST(Sync, AStepUsesTheMeasuredTimesAndForgetsThem) {
  InProcessJob job(2);
  use_strategy(job, "greedy");  // has no tolerance, in which a time that is 50 times the other one would stay
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    // All work on PE 0, none on PE 1: whatever the times are, one of them must go.
    for (int i : {0, 1}) co_await workers[i].call<&Worker::spin>(1000);
    for (int i : {2, 3}) co_await workers[i].call<&Worker::set_load>(0);
    Future<int> over(runtime);
    workers.send<&Worker::sync>(over);
    EXPECT_EQ(co_await over, 4);
    const std::vector<int> pes = co_await workers.call<&Worker::where_now>();
    EXPECT_NE(pes[0], pes[1]);
    EXPECT_EQ(co_await workers[0].call<&Worker::load_when_resumed>(), 0);
  }),
            "");
}

// --- Destruction

TEST(Sync, ACollectionMayBeDestroyedAtEachPointOfAStep) {
  for (const char* machine : {"loopback", "ucx"}) {
    // How many turns destroy() comes after at_sync(): before the reports, the decision, the moves, the end.
    for (int turns = 0; turns < 24; ++turns) {
      alive = 0;
      InProcessJob job(3, machine);
      use_strategy(job, "rotate");
      EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
        auto workers = Array<Worker>::create(runtime, {9});
        co_await workers.call<&Worker::sync_alone>();
        for (int i = 0; i < turns; ++i) co_await yield_now(runtime);
        co_await workers.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      }),
                "");
    }
  }
}

TEST(Sync, ACollectionMayBeDestroyedWhileSomeElementsWait) {
  alive = 0;
  InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    for (int round = 0; round < 3; ++round) {
      auto workers = Array<Worker>::create(runtime, {4});
      for (int i = 0; i <= round; ++i) co_await workers[i].call<&Worker::sync_alone>();
      co_await workers.destroy();
      EXPECT_EQ(alive, 0);
    }
  }),
            "");
}

}  // namespace
}  // namespace weft::chare::sync_testing
