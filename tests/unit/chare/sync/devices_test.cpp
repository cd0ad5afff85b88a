// Load balancing by device time: what spans of device work count, and how a step waits for them.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/balance/register_strategy.h"
#include "weft/chare/device_work.h"
#include "weft/weft.h"

#include "balance/strategy_table.h"
#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

using balance::Snapshot;

constexpr const char* kDeviceStrategy = "of_the_test";
// Kernels of many units make the device the busier resource, also in a build with sanitizers, whose host is slow.
constexpr int kUnitUs = 200;
constexpr double kUnitS = kUnitUs * 1e-6;

// Whether kernels of hold() may end.
bool may_end = true;

// A kernel of so many units of time. null: the stream of programs that name none.
void launch(Runtime& runtime, memory::StreamHandle stream, int units) {
  auto kernel = [units] {
    work(std::chrono::microseconds(units * kUnitUs));
    return Status();
  };
  memory::EmulatedBackend& device = testing::emulated(runtime.memory());
  EXPECT_TRUE(device.launch(stream, device_of(runtime, Kind::kEmulated).device, kernel).ok());
}

// Has device work.
struct Gpu : Chare<Gpu> {
  void pup(Pup& p) { p | over | has_target | resumed; }
  void resume_from_sync() override {
    ++resumed;
    if (std::exchange(has_target, false)) contribute(1, Reducer::kSum, target_of(over));
  }
  Place place() const { return device_of(runtime(), Kind::kEmulated); }

  void sync(Future<int> target) {
    over = std::move(target);
    has_target = true;
    at_sync();
  }
  void sync_with(double load_s, Future<int> target) {
    set_load_s(load_s);
    sync(std::move(target));
  }
  void compute(int units) {
    const DeviceWork span(*this, place(), nullptr);
    launch(runtime(), nullptr, units);
  }
  void compute_on_host(int units) { work(std::chrono::microseconds(units * kUnitUs)); }
  // A kernel that runs until may_end.
  void hold() {
    const DeviceWork span(*this, place(), nullptr);
    memory::EmulatedBackend& device = testing::emulated(runtime().memory());
    EXPECT_TRUE(device.launch(nullptr, place().device, testing::until(may_end)).ok());
  }
  Task<double> compute_across_an_await(int units) {
    Stream stream(runtime(), place());
    {
      const DeviceWork span(*this, stream);
      launch(runtime(), stream.handle(), units);
      co_await stream.done();
      launch(runtime(), stream.handle(), units);
    }
    co_await stream.done();
    co_return device_load_s();
  }
  // The span is open when the element waits at the sync point.
  Task<> sync_in_a_span(int units, Future<int> target) {
    Stream stream(runtime(), place());
    const DeviceWork span(*this, stream);
    launch(runtime(), stream.handle(), units);
    sync(std::move(target));
    gate = Future<>(runtime());
    co_await gate;
  }
  void open() { gate.set(); }
  // The device is done with all that was queued.
  Task<> finish() {
    memory::EmulatedBackend& device = testing::emulated(runtime().memory());
    const memory::EventHandle event = device.record(nullptr, place().device).value();
    // Not polled here: kernels would run inside this method, and be load of the host.
    runtime::OperationState* const state = runtime::OperationState::create(runtime());
    state->started(runtime().memory().when_event_done(place(), event, state->completion()), 0);
    co_await Operation(state);
    device.release_event(event);
  }
  double device_load() { return device_load_s(); }
  double load() { return load_s(); }
  int where_now() { return pe(); }
  void go(int to_pe) { migrate(to_pe); }
  int times_resumed() { return resumed; }

  Future<> gate;
  Future<int> over;
  bool has_target = false;
  int resumed = 0;
};

// Takes no part in load balancing.
struct Plain : Chare<Plain> {
  double compute() {
    Stream stream(runtime(), device_of(runtime(), Kind::kEmulated));
    const DeviceWork span(*this, stream);
    EXPECT_TRUE(runtime().memory().is_stream_idle(stream.place(), stream.handle())) << "no event is queued";
    return device_load_s();
  }
};

// Runs `main` on two PEs, with a strategy that moves nothing. Returns the snapshots of the steps.
std::vector<Snapshot> snapshots_of(std::function<Task<>(Runtime&)> main) {
  std::vector<Snapshot> seen;
  may_end = true;
  balance::register_strategy(kDeviceStrategy, [&seen](const Snapshot& snapshot) {
    seen.push_back(snapshot);
    return balance::present_placement(snapshot);
  });
  {
    InProcessJob job(2);
    use_strategy(job, kDeviceStrategy);
    EXPECT_EQ(job.run(std::move(main)), "");
  }
  balance::unregister_strategy(kDeviceStrategy);
  return seen;
}

Task<> sync_all(Runtime& runtime, Array<Gpu> gpus) {
  Future<int> over(runtime);
  gpus.send<&Gpu::sync>(over);
  EXPECT_EQ(co_await over, static_cast<int>(gpus.collection().shape().size()));
}

TEST(SyncDevices, LoadsAreThoseOfTheBusierResource) {
  std::vector<double> measured_s;
  const auto seen = snapshots_of([&measured_s](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {4});
    for (int i = 0; i < 4; ++i) co_await gpus[i].call<&Gpu::compute>(i == 1 ? 100 : 20);
    co_await gpus.call<&Gpu::finish>();
    measured_s = co_await gpus.call<&Gpu::device_load>();
    co_await sync_all(runtime, gpus);
    EXPECT_EQ((co_await gpus.call<&Gpu::device_load>()), std::vector<double>(4)) << "each step counts anew";
    co_await gpus[0].call<&Gpu::compute>(1);
    for (int i = 0; i < 4; ++i) co_await gpus[i].call<&Gpu::compute_on_host>(i == 2 ? 40 : 4);
    co_await sync_all(runtime, gpus);
  });
  ASSERT_EQ(seen.size(), 2U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_GE(measured_s[i], (i == 1 ? 100 : 20) * kUnitS);
    EXPECT_EQ(seen[0].objects[i].load_s, measured_s[i]);
  }
  EXPECT_GE(seen[1].objects[2].load_s, 40 * kUnitS) << "the host is the busier one";
}

// The PEs decide together, and agree on the resource. PE 0 is busier on its host, PE 1 on its device.
TEST(SyncDevices, PesThatDecideTogetherAgreeOnTheResource) {
  may_end = true;
  InProcessJob job(2);
  use_strategy(job, "diffusion");
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {4});
    for (int i : {0, 1}) co_await gpus[i].call<&Gpu::compute_on_host>(10);
    for (int i : {2, 3}) co_await gpus[i].call<&Gpu::compute>(100);
    co_await sync_all(runtime, gpus);
    const std::vector<int> pes = co_await gpus.call<&Gpu::where_now>();
    EXPECT_EQ(pes[0] + pes[1], 0);
    EXPECT_EQ(pes[2] + pes[3], 1) << "PE 1 has given one of them";
  }),
            "");
}

TEST(SyncDevices, AStepWaitsForTheDevices) {
  const auto seen = snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {4});
    co_await gpus.created();
    may_end = false;
    co_await gpus[2].call<&Gpu::hold>();
    co_await gpus[3].call<&Gpu::compute>(150);
    Future<int> over(runtime);
    gpus.send<&Gpu::sync>(over);
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(co_await gpus[2].call<&Gpu::times_resumed>(), 0);  // calls run as usual
      co_await runtime.sleep(0);
    }
    may_end = true;
    EXPECT_EQ(co_await over, 4);
    EXPECT_EQ(co_await gpus[2].call<&Gpu::times_resumed>(), 1);
  });
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_GE(seen[0].objects[3].load_s, 150 * kUnitS);
}

// A chain of calls, each with device work, does not hold the step up.
TEST(SyncDevices, AStepDoesNotWaitForWorkThatIsAddedMeanwhile) {
  snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {2});
    co_await gpus.created();
    co_await gpus[0].call<&Gpu::compute>(1);
    Future<int> over(runtime);
    gpus.send<&Gpu::sync>(over);
    while (!over.is_ready()) co_await gpus[0].call<&Gpu::compute>(1);
    EXPECT_EQ(co_await over, 2);
  });
}

TEST(SyncDevices, QuiescenceWaitsForAStepThatWaits) {
  snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {2});
    co_await gpus.created();
    may_end = false;
    co_await gpus[1].call<&Gpu::hold>();
    Future<int> over(runtime);
    gpus.send<&Gpu::sync>(over);
    Future<> quiet = runtime.quiescence();
    for (int i = 0; i < 50; ++i) co_await runtime.sleep(0);
    EXPECT_FALSE(quiet.is_ready());
    may_end = true;
    co_await quiet;
    EXPECT_TRUE(over.is_ready());
  });
}

TEST(SyncDevices, ALoadThatIsSetReplacesBoth) {
  const auto seen = snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {3});
    co_await gpus.created();
    co_await gpus[0].call<&Gpu::compute>(10);
    may_end = false;
    co_await gpus[1].call<&Gpu::hold>();  // no step waits for a time that is not needed
    Future<int> over(runtime);
    for (int i = 0; i < 3; ++i) gpus[i].send<&Gpu::sync_with>(5.0 - i, over);
    EXPECT_EQ(co_await over, 3);
    EXPECT_EQ(co_await gpus[0].call<&Gpu::load>(), 5.0);
    may_end = true;
  });
  ASSERT_EQ(seen.size(), 1U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(seen[0].objects[i].load_s, 5.0 - static_cast<double>(i));
}

TEST(SyncDevices, ThereIsNoBackgroundLoadBesideDeviceTime) {
  const auto seen = snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {2});
    auto others = Array<Gpu>::create(runtime, {2});
    for (const int units : {100, 0}) {
      co_await others[0].call<&Gpu::compute_on_host>(1);
      co_await gpus[0].call<&Gpu::compute>(units);
      co_await gpus[0].call<&Gpu::compute_on_host>(1);
      co_await sync_all(runtime, gpus);
    }
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_GE(seen[0].objects[0].load_s, 100 * kUnitS);
  EXPECT_EQ(seen[0].background_load_s, (std::vector<double>{0, 0}));
  EXPECT_GE(seen[1].background_load_s[0], kUnitS);
}

TEST(SyncDevices, ASpanMayBeOpenAcrossAnAwait) {
  snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {1});
    const double first_s = co_await gpus[0].call<&Gpu::compute_across_an_await>(3);
    EXPECT_GE(first_s, 6 * kUnitS);
    const double both_s = co_await gpus[0].call<&Gpu::compute_across_an_await>(3);
    EXPECT_GE(both_s, first_s + 6 * kUnitS);
  });
}

TEST(SyncDevices, ASpanCountsInTheStepInWhichItEnds) {
  const auto seen = snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {1});
    Future<int> over(runtime);
    Future<> ended = gpus[0].call<&Gpu::sync_in_a_span>(100, over);
    EXPECT_EQ(co_await over, 1);
    EXPECT_EQ(co_await gpus[0].call<&Gpu::device_load>(), 0);
    co_await gpus[0].call<&Gpu::open>();
    co_await ended;
    co_await sync_all(runtime, gpus);
  });
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_FALSE(seen[0].objects[0].can_move);
  EXPECT_GE(seen[1].objects[0].load_s, 100 * kUnitS);
}

TEST(SyncDevices, AnElementTakesAlongWhatDevicesHaveDone) {
  const auto seen = snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {2});
    co_await gpus[0].call<&Gpu::compute>(50);
    co_await gpus[0].call<&Gpu::finish>();
    const double before_s = co_await gpus[0].call<&Gpu::device_load>();
    EXPECT_GE(before_s, 50 * kUnitS);
    may_end = false;
    co_await gpus[0].call<&Gpu::hold>();  // does not count: the device is not done with it
    co_await gpus[0].call<&Gpu::go>(1);
    co_await runtime.quiescence();
    EXPECT_EQ(co_await gpus[0].call<&Gpu::where_now>(), 1);
    EXPECT_EQ(co_await gpus[0].call<&Gpu::device_load>(), before_s);
    may_end = true;
    co_await gpus[0].call<&Gpu::compute>(50);
    co_await sync_all(runtime, gpus);
  });
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].objects[0].pe, 1);
  EXPECT_GE(seen[0].objects[0].load_s, 100 * kUnitS);
}

TEST(SyncDevices, ACollectionMayBeDestroyedWhileItsStepWaits) {
  const auto seen = snapshots_of([](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {4});
    co_await gpus.created();
    may_end = false;
    for (int i = 0; i < 4; ++i) co_await gpus[i].call<&Gpu::hold>();
    co_await gpus.call<&Gpu::sync>(Future<int>(runtime));
    for (int i = 0; i < 10; ++i) co_await runtime.sleep(0);
    co_await gpus.destroy();
    may_end = true;
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(seen.empty());
}

TEST(SyncDevices, TheJobMayEndWhileAStepWaits) {
  bool never = false;
  snapshots_of([&never](Runtime& runtime) -> Task<> {
    auto gpus = Array<Gpu>::create(runtime, {4});
    co_await gpus.created();
    may_end = never;
    co_await gpus[0].call<&Gpu::hold>();
    co_await gpus[3].call<&Gpu::hold>();
    co_await gpus.call<&Gpu::sync>(Future<int>(runtime));
    for (int i = 0; i < 10; ++i) co_await runtime.sleep(0);
  });
}

TEST(SyncDevices, OtherClassesAreNotMeasured) {
  snapshots_of([](Runtime& runtime) -> Task<> {
    auto plain = Array<Plain>::create(runtime, {1});
    EXPECT_EQ(co_await plain[0].call<&Plain::compute>(), 0);
  });
}

}  // namespace
}  // namespace weft::chare::sync_testing
