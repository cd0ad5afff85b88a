// Background load: what a PE works for other collections.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "balance/strategy_table.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

using balance::Placement;
using balance::Snapshot;

constexpr const char* kBackgroundName = "of_the_test";
constexpr int kSpinUs = 1000;
constexpr double kSpinS = kSpinUs * 1e-6;

// Runs `main` on three PEs. Returns the background loads of each step. In step i the strategy moves all elements to PE to_pes[i];
// -1, and later: it moves nothing.
std::vector<std::vector<double>> background_loads(std::function<Task<>(Runtime&)> main,
                                                  const std::vector<int>& to_pes = {}) {
  std::vector<std::vector<double>> seen;
  balance::register_strategy(kBackgroundName, [&seen, to_pes](const Snapshot& snapshot) {
    const int to_pe = seen.size() < to_pes.size() ? to_pes[seen.size()] : -1;
    seen.push_back(snapshot.background_load_s);
    if (to_pe < 0) return balance::present_placement(snapshot);
    return Placement(snapshot.objects.size(), to_pe);
  });
  {
    InProcessJob job(3);
    use_strategy(job, kBackgroundName);
    EXPECT_EQ(job.run(std::move(main)), "");
  }
  balance::unregister_strategy(kBackgroundName);
  return seen;
}

// A step of elements whose loads are measured.
Task<> measured_step(Runtime& runtime, Array<Worker> workers) {
  Future<int> over(runtime);
  workers.send<&Worker::sync>(over);
  EXPECT_EQ(co_await over, static_cast<int>(workers.collection().shape().size()));
}

TEST(SyncBackground, IsTheWorkForOtherCollectionsSinceTheLastStep) {
  const auto seen = background_loads([](Runtime& runtime) -> Task<> {
    auto early = Array<Worker>::create(runtime, {3});
    co_await early[2].call<&Worker::spin>(kSpinUs);  // before the collection exists
    auto workers = Array<Worker>::create(runtime, {6});
    co_await workers.created();
    auto others = Array<Worker>::create(runtime, {3});
    co_await others[0].call<&Worker::spin>(kSpinUs);
    co_await workers[2].call<&Worker::spin>(kSpinUs);  // its own work
    co_await measured_step(runtime, workers);
    co_await measured_step(runtime, workers);
    co_await others[1].call<&Worker::spin>(2 * kSpinUs);
    co_await measured_step(runtime, workers);
  });
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_GE(seen[0][0], kSpinS);
  EXPECT_EQ(seen[0][1], 0);
  EXPECT_EQ(seen[0][2], 0);
  EXPECT_EQ(seen[1], (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(seen[2][0], 0);
  EXPECT_GE(seen[2][1], 2 * kSpinS);
  EXPECT_EQ(seen[2][2], 0);
}

TEST(SyncBackground, StepsOfTheOtherCollectionDoNotHideItsWork) {
  const auto seen = background_loads([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {3});
    auto others = Array<Worker>::create(runtime, {3});
    co_await others[1].call<&Worker::spin>(kSpinUs);
    co_await measured_step(runtime, others);  // resets the loads of its elements
    co_await others[1].call<&Worker::spin>(kSpinUs);
    co_await measured_step(runtime, workers);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_GE(seen[1][1], 2 * kSpinS);
}

TEST(SyncBackground, CountsTheWorkWhereItWasDone) {
  const auto seen = background_loads([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {3});
    auto others = Array<Worker>::create(runtime, Shape(1).on_pe(0));
    co_await others[0].call<&Worker::spin>(kSpinUs);
    others[0].send<&Worker::go>(1);
    co_await runtime.quiescence();
    co_await measured_step(runtime, workers);
    EXPECT_GE(co_await others[0].call<&Worker::spin>(kSpinUs), kSpinS);  // it has brought its load
    co_await measured_step(runtime, workers);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_GE(seen[0][0], kSpinS);
  EXPECT_EQ(seen[0][1], 0);
  EXPECT_EQ(seen[1][0], 0);
  EXPECT_GE(seen[1][1], kSpinS);
}

TEST(SyncBackground, CountsCollectionsThatHaveBeenDestroyed) {
  const auto seen = background_loads([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {3});
    auto others = Array<Worker>::create(runtime, {3});
    co_await others[2].call<&Worker::spin>(kSpinUs);
    co_await others.destroy();
    co_await measured_step(runtime, workers);
    co_await measured_step(runtime, workers);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_GE(seen[0][2], kSpinS);
  EXPECT_EQ(seen[0][0], 0);
  EXPECT_EQ(seen[1], (std::vector<double>{0, 0, 0}));
}

// A PE that has given all its elements away is not idle: it tells its load at the end of each step.
TEST(SyncBackground, IsKnownOfPesWithoutElements) {
  const auto seen = background_loads(
      [](Runtime& runtime) -> Task<> {
        auto workers = Array<Worker>::create(runtime, {3});
        auto others = Array<Worker>::create(runtime, {3});
        co_await measured_step(runtime, workers);  // all to PE 0
        for (int i = 0; i < 2; ++i) {
          co_await others[1].call<&Worker::spin>(kSpinUs);
          co_await measured_step(runtime, workers);
          co_await runtime.quiescence();
        }
        co_await measured_step(runtime, workers);  // knows of the second spin
        co_await runtime.quiescence();
        co_await measured_step(runtime, workers);  // knows that nothing has followed
      },
      {0});
  ASSERT_EQ(seen.size(), 5U);
  EXPECT_EQ(seen[0], (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(seen[1][1], 0);  // told at the end of a step, for the next one
  EXPECT_GE(seen[2][1], kSpinS);
  EXPECT_GE(seen[3][1], kSpinS);
  EXPECT_EQ(seen[4], (std::vector<double>{0, 0, 0}));
}

// The report of a PE that has elements again is of one step, as its elements' loads are.
TEST(SyncBackground, IsOfOneStepWhenElementsComeBack) {
  const auto seen = background_loads(
      [](Runtime& runtime) -> Task<> {
        auto workers = Array<Worker>::create(runtime, {3});
        auto others = Array<Worker>::create(runtime, {3});
        co_await measured_step(runtime, workers);
        co_await others[1].call<&Worker::spin>(100 * kSpinUs);  // in the step that brings elements
        co_await measured_step(runtime, workers);
        co_await runtime.quiescence();
        co_await others[1].call<&Worker::spin>(kSpinUs);
        co_await measured_step(runtime, workers);
      },
      {0, 1});
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[1][1], 0);
  EXPECT_GE(seen[2][1], kSpinS);
  EXPECT_LT(seen[2][1], 100 * kSpinS);
}

// Two steps end while the PE is in one call: it tells half of the call's time for each.
TEST(SyncBackground, IsSharedAmongTheStepsThatEndDuringACall) {
  const auto seen = background_loads(
      [](Runtime& runtime) -> Task<> {
        auto workers = Array<Worker>::create(runtime, {3});
        auto others = Array<Worker>::create(runtime, {3});
        co_await measured_step(runtime, workers);
        co_await runtime.quiescence();
        co_await others[1].call<&Worker::spin>(100 * kSpinUs);
        co_await measured_step(runtime, workers);
        co_await measured_step(runtime, workers);
        co_await runtime.quiescence();
        co_await measured_step(runtime, workers);
        co_await runtime.quiescence();
        co_await measured_step(runtime, workers);
      },
      {0});
  ASSERT_EQ(seen.size(), 5U);
  // The message about the first of the two steps comes before or after the second decision.
  EXPECT_GE(std::max(seen[2][1], 2 * seen[3][1]), 100 * kSpinS);
  EXPECT_EQ(seen[4][1], 0);
}

TEST(SyncBackground, IsNothingBesideLoadsThatTheProgramHasSet) {
  const auto seen = background_loads([](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {3});
    auto others = Array<Worker>::create(runtime, {3});
    co_await others[0].call<&Worker::spin>(kSpinUs);
    co_await workers[1].call<&Worker::set_load>(1e-9);
    co_await measured_step(runtime, workers);
  });
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0], (std::vector<double>{0, 0, 0}));
}

// One collection sees all work for another one, once, while elements of the latter move by themselves and by its own steps.
TEST(SyncBackground, CountsAllWorkOnceWhileElementsMove) {
  constexpr int kOthers = 8;
  constexpr int kRounds = 20;
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    double background = 0;  // of the observers, all PEs and steps
    double reported = 0;    // by the elements that work
    double reported_before = 0;
    balance::register_strategy(kBackgroundName, [&](const Snapshot& snapshot) {
      Placement placement = balance::present_placement(snapshot);
      if (snapshot.objects.size() == 3) {  // the observers, one on each PE
        for (const double one : snapshot.background_load_s) background += one;
      } else {
        reported_before = reported;
        for (const balance::ObjectLoad& object : snapshot.objects) reported += object.load_s;
        for (int& pe : placement) pe = static_cast<int>(random() % 3);
      }
      return placement;
    });
    {
      InProcessJob job(3);
      use_strategy(job, kBackgroundName);
      EXPECT_EQ(job.run([&random](Runtime& runtime) -> Task<> {
        auto observers = Array<Worker>::create(runtime, {3});
        co_await observers.created();
        auto others = Array<Worker>::create(runtime, {kOthers});
        for (int round = 0; round < kRounds; ++round) {
          for (int i = 0; i < kOthers; ++i) {
            others[i].send<&Worker::spin>(static_cast<int>(random() % 20));
            if (random() % 3 == 0) others[i].send<&Worker::go>(static_cast<int>(random() % 3));
            others[i].send<&Worker::spin>(static_cast<int>(random() % 20));
          }
          co_await runtime.quiescence();
          if (random() % 2 == 0) co_await measured_step(runtime, others);
          if (random() % 2 == 0) co_await measured_step(runtime, observers);
        }
        co_await measured_step(runtime, others);
        co_await measured_step(runtime, observers);
        co_await measured_step(runtime, others);
      }),
                "");
    }
    balance::unregister_strategy(kBackgroundName);
    EXPECT_GT(reported_before, 0);
    // The observers' last step lies between the last two of the others. The sums are of up to 1000 rounded numbers.
    constexpr double kRoundingS = 1e-9;
    EXPECT_GE(background, reported_before - kRoundingS);
    EXPECT_LE(background, reported + kRoundingS);
  }
}

}  // namespace
}  // namespace weft::chare::sync_testing
