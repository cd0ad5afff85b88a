// Aggregated calls through a grid: their ways, their order, and PEs that pass calls on while they compute, wait or have no room.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/chare/bundles/bundle_format.h"
#include "models/chare/bundles/grid.h"
#include "tests/support/errors.h"
#include "tests/support/flow_accounts.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/bundles/bundled_log.h"
#include "tests/unit/chare/chare_handler.h"

namespace weft::chare::bundle_testing {
namespace {

using test_support::says;
using test_support::thrown_by;

// The PEs to which a PE sends bundles.
struct SentBundles final : runtime::Observer {
  explicit SentBundles(Runtime& runtime) : handler(bundle_handler(runtime)) {}
  void message_sent(const runtime::MessageEvent& event) override {
    if (event.handler != handler && event.handler != handler + 1) return;
    pes.insert(event.pe);
    ++count;
  }
  const runtime::HandlerId handler;
  std::set<int> pes;
  int count = 0;
};

// On each PE.
struct GridCaller : Chare<GridCaller> {
  void call_all(const CollectionProxy<BundledLog>& logs, std::uint64_t calls) {
    const auto many = logs.aggregated();
    for (std::uint64_t i = 0; i < calls; ++i) {
      for (int element = 0; element < static_cast<int>(logs.shape().size()); ++element)
        many[element].send<&BundledLog::note>(number(i));
    }
  }
  std::uint64_t number(std::uint64_t i) const { return linear_index() << 32 | i; }
};

// Each PE calls all chares, two on each PE.
void expect_calls_of_all_pes_in_order(testing::InProcessJob& job) {
  use_grid(job);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    constexpr std::uint64_t kCalls = 500;
    const auto logs = Logs::create(runtime, {2 * job.num_pes()});
    const auto callers = Group<GridCaller>::create(runtime);
    callers.send<&GridCaller::call_all>(logs, kCalls);
    co_await runtime.quiescence();
    for (const auto& numbers : co_await logs.call<&BundledLog::all_numbers>()) {
      EXPECT_EQ(numbers.size(), kCalls * static_cast<std::uint64_t>(job.num_pes()));
      std::map<std::uint64_t, std::uint64_t> next;
      for (const std::uint64_t number : numbers) EXPECT_EQ(number & 0xffffffff, next[number >> 32]++);
    }
  }),
            "");
  testing::expect_equal_accounts(job);
}

TEST(BundleGrid, CallsOfAllPesArriveInTheirOrder) {
  for (const int num_pes : {4, 5, 7, 9, 11}) {
    SCOPED_TRACE(num_pes);
    testing::InProcessJob job(num_pes);
    expect_calls_of_all_pes_in_order(job);
  }
}

TEST(BundleGrid, CallsBetweenHostsArriveInTheirOrder) {
  runtime::RuntimeOptions options;
  options.host_of_pe = {0, 0, 1, 1, 1, 2, 0, 2};
  testing::InProcessJob job(8, "loopback", options);
  expect_calls_of_all_pes_in_order(job);
}

// PE 4 is in the middle of the grid, and PE 3 in the column of PE 5.
TEST(BundleGrid, APeSendsToItsRowAndItsColumn) {
  testing::InProcessJob job(9);
  use_grid(job);
  SentBundles sent(job.runtime(4));
  job.runtime(4).set_observer(&sent);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {9});
    const auto callers = Group<GridCaller>::create(runtime);
    callers.send<&GridCaller::call_all>(logs, 10U);
    co_await runtime.quiescence();
  }),
            "");
  job.runtime(4).set_observer(nullptr);
  EXPECT_EQ(sent.pes, (std::set{1, 3, 4, 5, 7}));
}

// The PE to which PE 0 sends a call for the last one.
int first_pe_on_the_way(testing::InProcessJob& job) {
  SentBundles sent(job.runtime(0));
  const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    const auto logs = Logs::create(runtime, {job.num_pes()});
    runtime.set_observer(&sent);
    logs.aggregated()[job.num_pes() - 1].send<&BundledLog::note>(1U);
    co_await runtime.quiescence();
    runtime.set_observer(nullptr);
  });
  EXPECT_EQ(failure, "");
  EXPECT_EQ(sent.pes.size(), 1U);
  return *sent.pes.begin();
}

TEST(BundleGrid, IsForManyPes) {
  testing::InProcessJob few(kLeastGridPes - 1);
  EXPECT_EQ(first_pe_on_the_way(few), kLeastGridPes - 2);
  testing::InProcessJob many(kLeastGridPes);
  EXPECT_NE(first_pe_on_the_way(many), kLeastGridPes - 1);
}

// A call between two PEs must not be lost with a third one.
TEST(BundleGrid, IsNotForJobsThatOutliveLosses) {
  auto job = testing::InProcessJob::outliving_losses(kLeastGridPes);
  EXPECT_EQ(first_pe_on_the_way(job), kLeastGridPes - 1);
}

// In a grid of four PEs: calls of PE 0 to PE 3 go through PE 2, and those of PE 2 to PE 1 through PE 0.
constexpr int kOnPe3 = 7;
constexpr int kOnPe1 = 3;

// Runs a function of the test in an entry method, or while an argument is packed.
struct Hooked : Chare<Hooked> {
  struct Argument {
    void pup(Pup& p) {
      if (p.is_packing() && hook) std::exchange(hook, nullptr)();
    }
  };
  void work() { std::exchange(hook, nullptr)(); }
  void take(const Argument&) { ++taken; }
  // Aggregated calls without an await.
  void flood(const CollectionProxy<BundledLog>& logs, int element, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) logs.aggregated()[element].send<&BundledLog::note>(i);
    ++flooded;
  }
  static inline std::function<void()> hook;
  static inline int taken = 0;
  static inline int flooded = 0;
};

struct FourPesInAGrid : ::testing::Test {
  void start(const runtime::RuntimeOptions& options = {}) {
    Hooked::taken = Hooked::flooded = 0;
    job = std::make_unique<testing::InProcessJob>(4, "loopback", options);
    use_grid(*job);
    logs.push_back(Logs::create(job->runtime(0), {8}));
    hooked.push_back(Group<Hooked>::create(job->runtime(0)));
    for (int i = 0; i < 1000; ++i) {
      for (int pe = 0; pe < 4; ++pe) job->runtime(pe).step();
    }
  }
  void call_pe_3(std::uint64_t begin, std::uint64_t end) {
    for (std::uint64_t i = begin; i < end; ++i) logs[0].aggregated()[kOnPe3].send<&BundledLog::note>(i);
  }
  // All of them have arrived, in order, and the accounts of flow control are equal.
  void expect_calls(int element, std::uint64_t count) {
    EXPECT_EQ(job->run([&](Runtime& runtime) -> Task<> {
      co_await runtime.quiescence();
      EXPECT_EQ(co_await logs[0][element].call<&BundledLog::all_numbers>(), numbers_below(count));
    }),
              "");
    testing::expect_equal_accounts(*job);
  }

  std::unique_ptr<testing::InProcessJob> job;
  std::vector<Logs> logs;
  std::vector<Group<Hooked>> hooked;
};

TEST_F(FourPesInAGrid, APeThatComputesPassesCallsOnInsideProgress) {
  start();
  Runtime& passing = job->runtime(2);
  SentBundles sent(passing);
  passing.set_observer(&sent);
  int sent_inside = 0;
  Hooked::hook = [&] {
    call_pe_3(0, 3000);
    passing.progress();
    sent_inside = sent.count;
  };
  hooked[0][2].send<&Hooked::work>();
  EXPECT_EQ(job->run_until([] { return Hooked::hook == nullptr; }), "");
  passing.set_observer(nullptr);
  EXPECT_EQ(sent_inside, 7);  // 398 calls fill a bundle: PE 0 has sent seven
  expect_calls(kOnPe3, 3000);
}

// It has no turn meanwhile. The bundle is not full.
TEST_F(FourPesInAGrid, APeThatWaitsInsideACallPassesCallsOn) {
  start();
  Runtime& passing = job->runtime(2);
  struct Wait {
    SentBundles sent;
    int polls;
  } wait{SentBundles(passing), 0};
  Hooked::hook = [&] {
    call_pe_3(0, 3);
    logs[0].aggregated().flush();
    passing.set_observer(&wait.sent);
    const auto is_over = [](void* context) {
      auto& of_the_test = *static_cast<Wait*>(context);
      return of_the_test.sent.count > 0 || ++of_the_test.polls == 1000;
    };
    passing.progress_until(is_over, &wait);
    passing.set_observer(nullptr);
  };
  hooked[0][2].send<&Hooked::work>();
  EXPECT_EQ(job->run_until([] { return Hooked::hook == nullptr; }), "");
  EXPECT_EQ(wait.sent.pes, std::set{3});
  expect_calls(kOnPe3, 3);
}

// The bundle whose call is packed must not change meanwhile.
TEST_F(FourPesInAGrid, CallsThatArriveWhileAnArgumentIsPackedWait) {
  start();
  Runtime& passing = job->runtime(2);
  SentBundles sent(passing);
  Hooked::hook = [&] {
    Hooked::hook = [&] {
      call_pe_3(0, 3000);
      passing.set_observer(&sent);
      passing.progress();
      EXPECT_EQ(sent.count, 0);
    };
    Collection& group = passing.model<Chares>().collection(hooked[0].collection().id());
    Group<Hooked>(group)[3].aggregated().send<&Hooked::take>(Hooked::Argument());
    passing.progress();
    EXPECT_EQ(sent.count, 8);  // the call of PE 2 in the first one
    passing.set_observer(nullptr);
  };
  hooked[0][2].send<&Hooked::work>();
  expect_calls(kOnPe3, 3000);
  EXPECT_EQ(Hooked::taken, 1);
}

// PE 3 takes nothing. PE 2 passes on what comes, so its room does not limit the calls.
TEST_F(FourPesInAGrid, TheRoomOfTheDestinationLimitsTheCalls) {
  runtime::RuntimeOptions options;
  options.watermarks = {100'000, 200'000, 1'000'000};
  start(options);
  std::uint64_t count = 0;
  const auto call = [&] {
    for (; count < 1'000'000; ++count) {
      call_pe_3(count, count + 1);
      if (count % 100 != 0) continue;
      job->runtime(2).step();
      job->runtime(0).machine().progress();  // the credit of PE 2
    }
  };
  EXPECT_TRUE(says(thrown_by(call), "messages and aggregated calls to PE 3 that PE 3 has not handled"));
  constexpr std::uint64_t kCallBytes = 20;
  EXPECT_GT(count, 1'000'000 / kCallBytes - 1000);
  EXPECT_LT(count, 1'000'000 / kCallBytes + 1000);
  EXPECT_TRUE(job->runtime(0).has_room(2));
  // What PE 2 has passed on is not charged to PE 2.
  EXPECT_GE(job->runtime(2).room_bytes(3), -100'000);
  expect_calls(kOnPe3, count);
}

// Each wait would send a message that nobody handles any more.
TEST_F(FourPesInAGrid, NoCallWaitsWhenTheJobEnds) {
  runtime::RuntimeOptions options;
  options.watermarks = {100'000, 200'000, 1'000'000};
  start(options);
  Runtime& runtime = job->runtime(0);
  Hooked::hook = [&] {
    runtime.announce_end();
    call_pe_3(0, 50'000);
  };
  hooked[0][0].send<&Hooked::work>();
  EXPECT_EQ(job->run_until([] { return Hooked::hook == nullptr; }), "");
  EXPECT_LT(runtime.room_bytes(3), -100'000);
  EXPECT_TRUE(runtime.flow_report().empty());
}

TEST_F(FourPesInAGrid, TheWaysStayAfterACall) {
  start();
  call_pe_3(0, 1);
  EXPECT_TRUE(says(thrown_by([&] { use_grid(*job); }), "are set before the first one"));
  expect_calls(kOnPe3, 1);
}

// The PE in between is not told in its place.
TEST_F(FourPesInAGrid, TheCallerLearnsWhereAChareIs) {
  start();
  SentBundles sent(job->runtime(0));
  EXPECT_EQ(job->run([&](Runtime& runtime) -> Task<> {
    logs[0][kOnPe3].send<&BundledLog::go>(1);
    co_await runtime.quiescence();
    call_pe_3(0, 1);
    co_await runtime.quiescence();
    runtime.set_observer(&sent);
    call_pe_3(1, 2);
    co_await runtime.quiescence();
    runtime.set_observer(nullptr);
    EXPECT_EQ(co_await logs[0][kOnPe3].call<&BundledLog::all_numbers>(), numbers_below(2));
  }),
            "");
  EXPECT_EQ(sent.pes, std::set{1});
}

// While a PE waits inside a call, the other ones have turns. One that waits itself moves only communication.
struct TurnsOfOthers final : runtime::IdleHook {
  TurnsOfOthers(testing::InProcessJob& job_in, int pe_in, std::array<bool, 4>& are_waiting_in)
      : job(job_in), pe(pe_in), are_waiting(are_waiting_in) {}
  void before_sleep() override {
    are_waiting.at(static_cast<std::size_t>(pe)) = true;
    for (int other = 0; other < job.num_pes(); ++other) {
      if (are_waiting.at(static_cast<std::size_t>(other))) {
        if (other != pe) job.runtime(other).machine().progress();
      } else {
        job.runtime(other).step();
      }
    }
    are_waiting.at(static_cast<std::size_t>(pe)) = false;
    job.runtime(pe).machine().wake();  // the next sleep of this PE is none
  }
  bool after_sleep() override { return true; }
  testing::InProcessJob& job;
  int pe;
  std::array<bool, 4>& are_waiting;
};

// PE 0 and PE 2 each wait for a PE that the other one passes calls on to.
TEST_F(FourPesInAGrid, PesThatWaitInsideCallsPassCallsOn) {
  runtime::RuntimeOptions options;
  options.watermarks = {200'000, 400'000, 100'000'000};
  start(options);
  std::array<bool, 4> are_waiting{};
  std::vector<std::unique_ptr<TurnsOfOthers>> turns;
  for (int pe = 0; pe < 4; ++pe) {
    turns.push_back(std::make_unique<TurnsOfOthers>(*job, pe, are_waiting));
    job->runtime(pe).set_idle_hook(turns.back().get());
  }
  constexpr std::uint64_t kCalls = 100'000;
  hooked[0][0].send<&Hooked::flood>(logs[0], kOnPe3, kCalls);
  hooked[0][2].send<&Hooked::flood>(logs[0], kOnPe1, kCalls);
  EXPECT_EQ(job->run_until([] { return Hooked::flooded == 2; }), "");
  for (int pe = 0; pe < 4; ++pe) job->runtime(pe).set_idle_hook(nullptr);
  EXPECT_FALSE(job->runtime(0).flow_report().empty());
  EXPECT_FALSE(job->runtime(2).flow_report().empty());
  EXPECT_EQ(job->run([&](Runtime& runtime) -> Task<> {
    co_await runtime.quiescence();
    for (const int element : {kOnPe1, kOnPe3})
      EXPECT_EQ(co_await logs[0][element].call<&BundledLog::all_numbers>(), numbers_below(kCalls));
  }),
            "");
  testing::expect_equal_accounts(*job);
}

// Calls that PE 0 does not send to that PE.
TEST_F(FourPesInAGrid, ACallThatDoesNotGoThisWayEndsTheJob) {
  const auto failure_of = [&](int to_pe, NamedPe named, PeNumber pe, bool is_passed_on = true) {
    start();
    const RunHeader run{logs[0].collection().id(),
                        EntryMethod<BundledLog, &BundledLog::note>::info().id,
                        0,
                        sizeof(std::uint64_t),
                        1,
                        named};
    Runtime& runtime = job->runtime(0);
    const auto handler = static_cast<runtime::HandlerId>(bundle_handler(runtime) + (is_passed_on ? 1 : 0));
    auto message = runtime::Message::pack(runtime, handler, BundleHeader{}, run, std::uint64_t{kOnPe3}, pe,
                                          std::uint64_t{1});
    if (is_passed_on) message->envelope().flags |= runtime::kUrgentFlag;
    runtime.send(to_pe, std::move(message));
    std::string failure = job->run([](Runtime& main) -> Task<> { co_await main.quiescence(); });
    logs.clear();
    hooked.clear();
    return failure;
  };
  EXPECT_TRUE(says(failure_of(1, NamedPe::kDestination, 2), "from PE 0 to PE 1 has a call of PE 0 to PE 2"));
  EXPECT_TRUE(says(failure_of(2, NamedPe::kDestination, 4), "has a call of PE 0 to PE 4"));
  EXPECT_TRUE(says(failure_of(2, NamedPe::kSource, 4), "has a call of PE 4 to PE 2"));
  EXPECT_TRUE(says(failure_of(2, NamedPe::kSource, 3), "has a call of PE 3 to PE 2"));
  EXPECT_TRUE(says(failure_of(1, NamedPe::kSource, 3, false), "has a call of PE 3 to PE 1"));
  EXPECT_TRUE(says(failure_of(1, NamedPe::kDestination, 0, false), "has a call of PE 0 to PE 0"));
  EXPECT_TRUE(says(failure_of(2, NamedPe::kNone, 0), "does not name the PEs of its calls"));
}

}  // namespace
}  // namespace weft::chare::bundle_testing
