// Aggregated calls: what arrives, in which order, when bundles are sent, and what meets moves, ends and slow receivers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/bundles/bundled_log.h"

namespace weft::chare::bundle_testing {
namespace {

using test_support::says;
using test_support::thrown_by;

// Runs the test on 1, 2 and 5 PEs, and with a grid on whole ones and on some whose last column is shorter.
void run_on_several_pes(const std::function<Task<>(Runtime&)>& test) {
  for (const int num_pes : {1, 2, 5}) {
    SCOPED_TRACE(num_pes);
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run(test), "");
  }
  for (const int num_pes : {1, 4, 5, 7, 9, 11}) {
    SCOPED_TRACE(std::to_string(num_pes) + " in a grid");
    testing::InProcessJob job(num_pes);
    use_grid(job);
    EXPECT_EQ(job.run(test), "");
  }
}

TEST(AggregatedCalls, ArriveOnceAndInTheOrderOfThePe) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {10});
    const auto many = logs.aggregated();
    constexpr std::uint64_t kCalls = 3000;  // several bundles
    for (std::uint64_t i = 0; i < kCalls; ++i) {
      for (int element = 0; element < 10; ++element) many[element].send<&BundledLog::note>(i);
      if (i % 700 == 0) many.flush();
      if (i % 900 == 0) co_await yield_now(runtime);
    }
    co_await runtime.quiescence();
    for (const auto& numbers : co_await logs.call<&BundledLog::all_numbers>())
      EXPECT_EQ(numbers, numbers_below(kCalls));
  });
}

// The first ones wait in a bundle, because the chare is not made yet; the last one would be queued at once.
TEST(AggregatedCalls, ArriveInOrderWhenTheChareIsMadeMeanwhile) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {10});
    const auto many = logs.aggregated();
    for (int element = 0; element < 10; ++element) many[element].send<&BundledLog::note>(0U);
    co_await logs.created();
    for (int element = 0; element < 10; ++element) many[element].send<&BundledLog::note>(1U);
    co_await runtime.quiescence();
    for (const auto& numbers : co_await logs.call<&BundledLog::all_numbers>())
      EXPECT_EQ(numbers, numbers_below(2));
  });
}

TEST(AggregatedCalls, TakeArgumentsOfAllKinds) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    const auto many = logs.aggregated();
    const std::vector<double> values{1, 2, 4};
    const std::vector<std::uint64_t> more{7, 8};
    for (int element = 0; element < 5; ++element) {
      many(element).send<&BundledLog::write>("a", values);
      many(element).send<&BundledLog::write>(std::string(500, 'b'), values);
      many[element].send<&BundledLog::note_later>(6U, more);
      many[element].send<&BundledLog::answer>();  // its result is dropped
      logs[element].aggregated().send<&BundledLog::write>("c", std::vector<double>{});
    }
    co_await runtime.quiescence();
    for (const auto& text : co_await logs.call<&BundledLog::all_text>())
      EXPECT_EQ(text, "a7.000000" + std::string(500, 'b') + "7.000000c0.000000");
    const std::vector<std::uint64_t> expected{6, 7, 8};
    for (const auto& numbers : co_await logs.call<&BundledLog::all_numbers>()) EXPECT_EQ(numbers, expected);
  });
}

TEST(AggregatedCalls, WithLargeArgumentsTravelAlone) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    std::vector<std::uint64_t> sizes;
    for (const std::size_t size : {10, 126, 127, 128, 1000, 5000, 100'000}) {
      logs.aggregated()[4].send<&BundledLog::take_large>(std::vector<std::uint64_t>(size));
      sizes.push_back(size);
      co_await runtime.quiescence();
    }
    EXPECT_EQ(co_await logs[4].call<&BundledLog::all_numbers>(), sizes);
  });
}

TEST(AggregatedCalls, AreSentWhenThePeHasNothingElseToDo) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    Future<> noted(runtime);
    logs.aggregated()[4].send<&BundledLog::note_and_set>(1U, noted);
    co_await noted;
  });
}

TEST(AggregatedCalls, AreSentWhileAProgramPolls) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    Future<> noted(runtime);
    logs.aggregated()[4].send<&BundledLog::note_and_set>(1U, noted);
    int polls = 0;
    while (!noted.is_ready() && ++polls < 10'000) co_await yield_now(runtime);
    EXPECT_LT(polls, 1000);
  });
}

TEST(AggregatedCalls, AreUnderWayForQuiescence) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {10});
    for (int element = 0; element < 10; ++element)
      logs[element].send<&BundledLog::note_at>(logs, 9 - element, 100U);
    co_await runtime.quiescence();
    for (const auto& numbers : co_await logs.call<&BundledLog::all_numbers>())
      EXPECT_EQ(numbers, numbers_below(100));
  });
}

TEST(AggregatedCalls, ReachCharesThatMove) {
  for (const int num_pes : {2, 3, 5, 9, 11}) {
    SCOPED_TRACE(num_pes);
    testing::InProcessJob job(num_pes);
    if (num_pes > 3) use_grid(job);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      const auto logs = Logs::create(runtime, {10});
      const auto many = logs.aggregated();
      for (std::uint64_t i = 0; i < 400; ++i) {
        for (int element = 0; element < 10; ++element) many[element].send<&BundledLog::note>(i);
        const int mover = static_cast<int>(i) % 10;
        if (i % 3 == 0) logs[mover].send<&BundledLog::go>(static_cast<int>(i) % num_pes);
        if (i % 8 == 0) co_await yield_now(runtime);
      }
      co_await runtime.quiescence();
      for (auto numbers : co_await logs.call<&BundledLog::all_numbers>()) {
        std::ranges::sort(numbers);  // calls that are forwarded may be overtaken
        EXPECT_EQ(numbers, numbers_below(400));
      }
      // They stay now, and this PE knows where they are.
      for (std::uint64_t i = 400; i < 3000; ++i) many[3].send<&BundledLog::note>(i);
      co_await runtime.quiescence();
      const auto numbers = co_await logs[3].call<&BundledLog::all_numbers>();
      EXPECT_TRUE(std::is_sorted(numbers.begin() + 400, numbers.end()));
    }),
              "");
  }
}

TEST(AggregatedCalls, ToADestroyedCollectionAreRefused) {
  run_on_several_pes([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    const auto many = logs.aggregated();
    co_await logs.destroy();
    EXPECT_TRUE(says(thrown_by([&] { many[4].send<&BundledLog::note>(1U); }), "has been destroyed"));
  });
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    co_await logs.created();
    logs.aggregated()[4].send<&BundledLog::note>(1U);
    co_await logs.destroy();
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "has been destroyed"));
  EXPECT_TRUE(says(failure, "note"));
}

TEST(AggregatedCalls, AnExceptionEndsTheJobInWords) {
  for (const int num_pes : {1, 2}) {
    testing::InProcessJob job(num_pes);
    const std::string failure = job.run([](Runtime& runtime) -> Task<> {
      const auto logs = Logs::create(runtime, {5});
      for (int i = 0; i < 3; ++i) logs.aggregated()[4].send<&BundledLog::fail>();
      co_await runtime.make_future<>();
    });
    EXPECT_TRUE(says(failure, "BundledLog[4].fail"));
    EXPECT_TRUE(says(failure, "a mistake"));
  }
}

// The pup function of an argument makes an aggregated call to the same PE, and packs the rest of it behind that.
struct CallingArgument {
  CollectionProxy<BundledLog> logs;
  bool flushes = false;
  void pup(Pup& p) {
    if (p.is_packing() && flushes) logs.aggregated().flush();
    if (p.is_packing() && !flushes) logs.aggregated()[4].send<&BundledLog::note>(7U);
    p | logs | flushes;
  }
};
struct TakesCalling : Chare<TakesCalling> {
  void take(const CallingArgument&) {}
};

TEST(AggregatedCalls, AreRefusedWhileAnotherOneIsPacked) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    const auto takers = Array<TakesCalling>::create(runtime, {5});
    for (std::uint64_t i = 0; i < 2; ++i) {
      const CallingArgument calling{logs, i == 1};
      const auto call = [&] { takers.aggregated()[4].send<&TakesCalling::take>(calling); };
      EXPECT_TRUE(says(thrown_by(call), "make them before"));
      logs.aggregated()[4].send<&BundledLog::note>(i);
    }
    co_await runtime.quiescence();
    EXPECT_EQ(co_await logs[4].call<&BundledLog::all_numbers>(), numbers_below(2));
  }),
            "");
}

// Code that runs inside of the sending of a bundle, as a signal handler of the program does in a call that waits for room.
struct CallsWhileSending final : runtime::Observer {
  explicit CallsWhileSending(const Logs& logs_in) : logs(logs_in) {}
  void message_sent(const runtime::MessageEvent& event) override {
    if (!std::exchange(is_armed, false)) return;
    EXPECT_EQ(event.pe, 1);
    logs.aggregated().flush();
    for (const int element : {0, 2, 5}) logs.aggregated()[element].send<&BundledLog::note>(0U);
  }
  Logs logs;
  bool is_armed = false;
};

TEST(AggregatedCalls, AreMadeOnceWhileABundleToTheSamePeIsSent) {
  testing::InProcessJob job(3);
  std::unique_ptr<CallsWhileSending> calls;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {6});
    co_await logs.created();
    const auto many = logs.aggregated();
    calls = std::make_unique<CallsWhileSending>(logs);
    runtime.set_observer(calls.get());
    for (const bool fills : {false, true}) {
      calls->is_armed = fills;
      for (std::uint64_t i = 0; i < (fills ? 1000U : 1U); ++i) many[3].send<&BundledLog::note>(i);
      EXPECT_FALSE(calls->is_armed);
      calls->is_armed = !fills;
      many.flush();
      EXPECT_FALSE(calls->is_armed);
    }
    runtime.set_observer(nullptr);
    co_await runtime.quiescence();
    EXPECT_EQ((co_await logs[3].call<&BundledLog::all_numbers>()).size(), 1001U);
    for (const int element : {0, 2, 5})
      EXPECT_EQ((co_await logs[element].call<&BundledLog::all_numbers>()).size(), 2U);
  }),
            "");
}

struct FailingArgument {
  void pup(Pup& p) {
    if (p.is_packing()) throw base::Error(base::StatusCode::kInvalidArgument, "it cannot be packed");
  }
};
struct TakesFailing : Chare<TakesFailing> {
  void take(const FailingArgument&) {}
  void take_too(const FailingArgument&) {}
};

TEST(AggregatedCalls, WhosePackingFailsAreNotMade) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {5});
    const auto takers = Array<TakesFailing>::create(runtime, {5}).aggregated();
    for (std::uint64_t i = 0; i < 500; ++i) {
      EXPECT_NE(thrown_by([&] { takers[4].send<&TakesFailing::take>(FailingArgument()); }), "");
      EXPECT_NE(thrown_by([&] { takers[4].send<&TakesFailing::take_too>(FailingArgument()); }), "");
      if (i >= 490) logs.aggregated()[4].send<&BundledLog::note>(i - 490);
    }
    co_await runtime.quiescence();
    EXPECT_EQ(co_await logs[4].call<&BundledLog::all_numbers>(), numbers_below(10));
  }),
            "");
}

// Outside of the scheduler a call never waits, and past the limit it throws.
TEST(AggregatedCalls, ThatFlowControlRefusesLeaveTheOthers) {
  runtime::RuntimeOptions options;
  options.watermarks = {100'000, 200'000, 1'000'000};
  testing::InProcessJob job(2, "loopback", options);
  const auto logs = Logs::create(job.runtime(0), {5});
  for (int i = 0; i < 1000; ++i) {
    for (int pe = 0; pe < 2; ++pe) job.runtime(pe).step();
  }
  const auto many = logs.aggregated();
  std::uint64_t count = 0;
  const auto call = [&] {
    for (; count < 1'000'000; ++count) many[4].send<&BundledLog::note>(count);
  };
  EXPECT_TRUE(says(thrown_by(call), "waiting cannot help"));
  EXPECT_GT(count, 1'000'000 / 16 / 2);
  EXPECT_LT(count, 1'000'000 / 16 * 2);
  EXPECT_TRUE(says(thrown_by([&] { many.flush(); }), "waiting cannot help"));
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    co_await runtime.quiescence();
    EXPECT_EQ(co_await logs[4].call<&BundledLog::all_numbers>(), numbers_below(count));
  }),
            "");
}

// They take no memory any more.
TEST(AggregatedCalls, AreDroppedWithoutRoomWhenTheJobEnds) {
  for (const bool has_grid : {false, true}) {
    runtime::RuntimeOptions options;
    options.watermarks = {100'000, 200'000, 1'000'000};
    testing::InProcessJob job(4, "loopback", options);
    if (has_grid) use_grid(job);
    Runtime& runtime = job.runtime(0);
    const auto logs = Logs::create(runtime, {8});
    const auto many = logs.aggregated();
    runtime.announce_end();
    for (std::uint64_t i = 0; i < 200'000; ++i) many[7].send<&BundledLog::note>(i);
    for (std::uint64_t i = 0; i < 1000; ++i) {
      many[7].send<&BundledLog::note>(i);
      many.flush();
    }
    EXPECT_GT(runtime.room_bytes(has_grid ? 2 : 3), -110'000);  // the second watermark and a bundle
  }
}

// No caller could wait when the PE is idle.
TEST(AggregatedCalls, OfAnIdlePeWaitForRoom) {
  runtime::RuntimeOptions options;
  options.watermarks = {10'000, 20'000, 1'000'000};
  testing::InProcessJob job(3, "loopback", options);
  Runtime& runtime = job.runtime(0);
  const auto logs = Logs::create(runtime, {6});
  std::uint64_t count = 0;
  for (; runtime.has_room(1); ++count) logs[3].send<&BundledLog::note>(count);
  logs.aggregated()[3].send<&BundledLog::note>(count);
  const std::int64_t room_bytes = runtime.room_bytes(1);
  for (int i = 0; i < 200; ++i) runtime.step();
  EXPECT_EQ(runtime.room_bytes(1), room_bytes);
  EXPECT_TRUE(runtime.awaits_room());
  // Another PE has room.
  const std::int64_t other_room_bytes = runtime.room_bytes(2);
  logs.aggregated()[5].send<&BundledLog::note>(0U);
  for (int i = 0; i < 200; ++i) runtime.step();
  EXPECT_LT(runtime.room_bytes(2), other_room_bytes);
  EXPECT_EQ(runtime.room_bytes(1), room_bytes);
  EXPECT_EQ(job.run([&](Runtime&) -> Task<> {
    co_await runtime.quiescence();
    EXPECT_EQ(co_await logs[3].call<&BundledLog::all_numbers>(), numbers_below(count + 1));
    EXPECT_EQ(co_await logs[5].call<&BundledLog::all_numbers>(), numbers_below(1));
  }),
            "");
  EXPECT_FALSE(runtime.awaits_room());
}

// As other calls without results.
TEST(AggregatedCalls, ToALostPeAreDropped) {
  auto job = testing::InProcessJob::outliving_losses(4);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {4});
    const auto many = logs.aggregated();
    co_await logs.created();
    many[2].send<&BundledLog::note>(0U);  // in a bundle when the PE is lost
    job.lose(2);
    for (std::uint64_t i = 0; i < 3000; ++i) {
      for (int element = 1; element < 4; ++element) many[element].send<&BundledLog::note>(i);
      if (i % 500 == 0) co_await yield_now(runtime);
    }
    for (const int element : {1, 3}) {
      Future<> noted(runtime);
      many[element].send<&BundledLog::note_and_set>(3000U, noted);
      co_await noted;
      EXPECT_EQ(co_await logs[element].call<&BundledLog::all_numbers>(), numbers_below(3001));
    }
  }),
            "");
}

struct CountedMessages final : runtime::WorkTime {
  void sent(runtime::ElementId to, std::uint64_t size_bytes) override {
    EXPECT_EQ(to.index, 3U);
    messages += 1;
    bytes += size_bytes;
  }
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
};

// Load balancing that looks at communication.
TEST(AggregatedCalls, AreCountedForLoadBalancing) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {4});
    co_await logs.created();
    runtime.meter().set_counts_messages(true);
    auto& counted = *new CountedMessages;
    const runtime::WorkTimeShare owner(&counted);
    {
      const runtime::WorkMeter::Span span(runtime.meter(), counted);
      for (int i = 0; i < 5; ++i) logs.aggregated()[3].send<&BundledLog::note>(1U);
    }
    EXPECT_EQ(counted.messages, 5U);
    EXPECT_EQ(counted.bytes, 5 * sizeof(std::uint64_t));
  }),
            "");
}

}  // namespace
}  // namespace weft::chare::bundle_testing
