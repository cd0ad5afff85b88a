#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/sections.h"
#include "weft/weft.h"

#include "models/chare/elements/moving.h"
#include "models/chare/sync/sync_points.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

// max / average - 1
double imbalance(const std::vector<int>& pes, const std::vector<double>& loads, int num_pes) {
  std::vector<double> times(static_cast<std::size_t>(num_pes));
  double sum = 0;
  for (std::size_t i = 0; i < pes.size(); ++i) {
    times[static_cast<std::size_t>(pes[i])] += loads[i];
    sum += loads[i];
  }
  return *std::ranges::max_element(times) / (sum / num_pes) - 1;
}

std::vector<double> ramp(int count) {
  std::vector<double> loads;
  for (int i = 0; i < count; ++i) loads.push_back(1 + 9.0 * i / (count - 1));
  return loads;
}

TEST(SyncDecision, BalancesARampInOneStep) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int num_pes : {2, 4}) {
      alive = 0;
      InProcessJob job(num_pes, machine);
      EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
        const std::vector<double> loads = ramp(16 * num_pes);
        const auto count = static_cast<int>(loads.size());
        auto workers = Array<Worker>::create(runtime, {count});
        EXPECT_GT(imbalance(co_await workers.call<&Worker::where_now>(), loads, num_pes), 0.3);
        co_await step(runtime, workers, loads);
        EXPECT_LT(imbalance(co_await workers.call<&Worker::where_now>(), loads, num_pes), 0.05);
        for (int resumed : co_await workers.call<&Worker::times_resumed>()) EXPECT_EQ(resumed, 1);
        EXPECT_EQ(alive, count);
        co_await workers.destroy();
        EXPECT_EQ(alive, 0);
      }),
                "");
    }
  }
}

// The loads that the program sets are the same for all, and the times are not.
TEST(SyncDecision, APeThatWorksOffSetLoadsMoreSlowlyGetsFewer) {
  for (const char* strategy : {"greedy", "greedy_refine", "refine", "diffusion"}) {
    SCOPED_TRACE(strategy);
    InProcessJob job(2);
    use_strategy(job, strategy);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      constexpr int kElements = 12;
      auto workers = Array<Worker>::create(runtime, {kElements});
      for (int i = 0; i < 3; ++i) {
        Future<int> over(runtime);
        workers.send<&Worker::work_and_sync>(1, over);
        EXPECT_EQ(co_await over, kElements);
        const std::vector<int> pes = co_await workers.call<&Worker::where_now>();
        // Nothing is known of the speeds in the first step.
        EXPECT_EQ(std::ranges::count(pes, 1), i == 0 ? 6 : 4);
      }
    }),
              "");
  }
}

TEST(SyncDecision, ResumesEachElementOnceInEachStep) {
  for (int num_pes : {1, 2, 3, 5}) {
    for (const char* strategy : {"none", "rotate", "random", "greedy", "diffusion"}) {
      SCOPED_TRACE(strategy);
      InProcessJob job(num_pes);
      use_strategy(job, strategy);
      EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
        constexpr int kElements = 7;
        auto workers = Array<Worker>::create(runtime, {kElements});
        for (int i = 1; i <= 12; ++i) {
          std::vector<double> loads;
          for (int j = 0; j < kElements; ++j) loads.push_back((i * j) % 5);
          co_await step(runtime, workers, loads);
          for (int resumed : co_await workers.call<&Worker::times_resumed>()) EXPECT_EQ(resumed, i);
          for (int pe : co_await workers.call<&Worker::where_now>()) EXPECT_LT(pe, num_pes);
        }
      }),
                "");
    }
  }
}

// --- What peers claim

struct WireHeader {
  std::uint64_t collection;
  std::uint64_t step;
  std::uint32_t kind;
  std::uint32_t reserved;
};
struct WireLoad {
  std::uint64_t index;
  double load_s;
  std::uint64_t can_move;
  double device_load_s = 0;
};
struct WireMessages {
  std::uint64_t position;
  SentTo sent;
};
enum WireKind : std::uint32_t { kLoads, kPlan, kStays, kDone, kResume, kBackground, kNoSuchKind = 16 };

template <class... Values>
void send_sync(Runtime& from, int to_pe, const Collection& collection, std::uint64_t step, std::uint32_t kind,
               const Values&... values) {
  const runtime::HandlerId handler = from.model<Chares>().sync().handler();
  from.send(to_pe,
            runtime::Message::pack(from, handler, WireHeader{collection.id(), step, kind, 0}, values...));
}

// Sends a message from PE 1 to PE 0, which decides, before any element waits.
template <class... Values>
std::string failure_of(std::uint64_t step, std::uint32_t kind, const Values&... values) {
  InProcessJob job(2);
  return job.run([&](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    co_await workers.created();
    send_sync(job.runtime(1), 0, workers.collection(), step, kind, values...);
    co_await runtime.quiescence();
  });
}

// One PE hears of the end of a step before the others. An element of it moves and reaches the next sync point on a PE that
// is still in the step. The end of the step then comes a second time, as one that a later message has overtaken.
TEST(SyncDecision, AnElementMayBeAheadOfItsNewPe) {
  InProcessJob job(3);
  use_strategy(job, "none");
  EXPECT_EQ(job.run([&job](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {6});
    EXPECT_EQ(co_await workers.call<&Worker::where_now>(), list(0, 0, 1, 1, 2, 2));
    for (int i = 1; i < 6; ++i) co_await workers[i].call<&Worker::sync_alone>();
    co_await runtime.quiescence();
    send_sync(job.runtime(0), 2, workers.collection(), 0, kResume);
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(0, 0, 0, 0, 1, 1));
    co_await workers[4].call<&Worker::go>(1);
    co_await workers[4].call<&Worker::sync_alone>();
    EXPECT_EQ(co_await workers[4].call<&Worker::where_now>(), 1);
    co_await runtime.quiescence();
    workers[0].send<&Worker::sync_alone>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(1, 1, 1, 1, 1, 1));
    for (int i : {0, 1, 2, 3, 5}) workers[i].send<&Worker::sync_alone>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await workers.call<&Worker::times_resumed>(), list(2, 2, 2, 2, 2, 2));
  }),
            "");
}

TEST(SyncDecision, ChecksWhatPeersSend) {
  using Loads = std::vector<WireLoad>;
  using Moves = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  using Messages = std::vector<WireMessages>;
  const std::uint64_t are_measured = 0;
  const Messages none;
  EXPECT_EQ(failure_of(0, kLoads, 0.5, are_measured, Pace(), Loads{{2, 1, 1}}, none), "");
  EXPECT_TRUE(
      says(failure_of(0, kLoads, 0.5, are_measured, Pace(), Loads{{4, 1, 1}}, none), "element 4 of 4"));
  EXPECT_TRUE(says(failure_of(0, kLoads, 0.5, are_measured, Pace(), Loads{{2, 1, 1}, {2, 1, 1}}, none),
                   "reported before"));
  EXPECT_TRUE(
      says(failure_of(0, kLoads, 0.5, are_measured, Pace(), Loads{{2, -1, 1}}, none), "expected 0 to"));
  EXPECT_TRUE(says(failure_of(0, kLoads, 0.5, are_measured, Pace(), Loads{{2, 1, 1, -1}}, none),
                   "with a device load of"));
  EXPECT_TRUE(
      says(failure_of(1, kLoads, 0.5, are_measured, Pace(), Loads{}, none), "loads of step 1, not 0"));
  EXPECT_TRUE(
      says(failure_of(0, kLoads, 0.5, std::uint64_t{2}, Pace(), Loads{}, none), "loads with a flag of 2"));
  EXPECT_TRUE(
      says(failure_of(0, kLoads, 0.5, are_measured, Pace{-1, 1, 1}, Loads{}, none), "worked off -1 in 1 s"));
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  for (const double wrong : {-1.0, 2e12, kNoNumber}) {
    EXPECT_TRUE(
        says(failure_of(0, kLoads, wrong, are_measured, Pace(), Loads{}, none), "a background load of"));
    EXPECT_TRUE(says(failure_of(0, kBackground, std::uint64_t{1}, wrong), "a background load of"));
  }
  for (const std::uint64_t wrong : {std::uint64_t{0}, (std::uint64_t{1} << 48) + 1}) {
    EXPECT_TRUE(says(failure_of(0, kBackground, wrong, 0.5), "a background load of"));
  }
  EXPECT_EQ(failure_of(0, kBackground, std::uint64_t{3}, 0.5), "");
  EXPECT_TRUE(says(failure_of(0, kLoads, std::uint64_t{1} << 60), "bytes"));
  const Loads two{{2, 1, 1}, {3, 1, 1}};
  EXPECT_EQ(failure_of(0, kLoads, 0.5, are_measured, Pace(), two, Messages{{0, {3, 1, 8}}, {1, {0, 5, 0}}}),
            "");
  for (const Messages& wrong :
       {Messages{{2, {3, 1, 8}}}, Messages{{1, {0, 1, 8}}, {0, {3, 1, 8}}}, Messages{{0, {4, 1, 8}}},
        Messages{{0, {2, 1, 8}}}, Messages{{0, {3, 0, 8}}}, Messages{{0, {3, 1, 8}}, {0, {3, 1, 8}}},
        Messages{{0, {3, 1, ~std::uint64_t{0}}}}}) {
    EXPECT_TRUE(says(failure_of(0, kLoads, 0.5, are_measured, Pace(), two, wrong), "messages of element"));
  }
  EXPECT_TRUE(says(failure_of(0, kPlan, std::uint64_t{0}, Moves{}), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kResume), "another PE decides"));
  EXPECT_TRUE(says(failure_of(0, kDone, std::uint64_t{0}, std::uint64_t{0}), "no moves of step 0"));
  EXPECT_TRUE(says(failure_of(0, kNoSuchKind), "there is no kind 16"));
}

// PE 1 sends its element 3 to PE 0, with what it takes along beside a state that is right.
template <class... TakenAlong>
std::string failure_of_taking(const TakenAlong&... taken_along) {
  InProcessJob job(2);
  return job.run([&](Runtime& runtime) -> Task<> {
    auto workers = Array<Worker>::create(runtime, {4});
    co_await workers.created();
    Runtime& peer = job.runtime(1);
    constexpr int kMoveAfterEntry = 9;
    const auto handler =
        static_cast<runtime::HandlerId>(peer.model<Chares>().entry_handler() + kMoveAfterEntry);
    MoveHeader header;
    header.collection = workers.collection().id();
    header.index = 3;
    header.move = 1;
    header.feature_bytes = static_cast<std::uint32_t>((base::packed_size(taken_along) + ...));
    // What the channels of the element would have: ends, and announcements of peers.
    const std::vector<std::uint64_t> none;
    peer.send(0, runtime::Message::pack(peer, handler, header, taken_along..., none, none, Future<int>(),
                                        false, 0, 0, 0, 0));
    co_await runtime.quiescence();
  });
}

// An element takes along its reductions over sections, and its load.
std::string failure_of_move(const std::optional<LoadOnTheMove>& load) {
  return failure_of_taking(std::vector<SectionCount>(), load);
}

LoadOnTheMove load_on_the_move(std::uint64_t step, SyncPhase phase, std::optional<double> set_load_s,
                               std::int64_t measured_ns) {
  return {{step, phase, set_load_s}, measured_ns, {}};
}

TEST(SyncDecision, ChecksTheBytesOfWhatAnElementTakesAlong) {
  const std::vector<SectionCount> counts;
  const std::optional load = load_on_the_move(0, SyncPhase::kRuns, 1.0, 1);
  EXPECT_TRUE(says(failure_of_taking(counts, load, std::uint64_t{0}),
                   "has taken along 8 bytes from PE 1 that PE 0 does not know"));
  EXPECT_NE(failure_of_taking(counts), "");
}

TEST(SyncDecision, ChecksTheLoadOfAnElementThatComes) {
  constexpr auto kNoPhase = static_cast<SyncPhase>(3);
  constexpr auto kRuns = SyncPhase::kRuns;
  EXPECT_TRUE(says(failure_of_move(std::nullopt), "with and without a load"));
  for (const LoadOnTheMove& load :
       {load_on_the_move(0, kNoPhase, std::nullopt, 0), load_on_the_move(0, kRuns, -1.0, 0),
        load_on_the_move(0, kRuns, std::nullopt, -1), load_on_the_move(0, kRuns, 1e300, 0)}) {
    EXPECT_TRUE(says(failure_of_move(load), "with a load that is none"));
  }
  for (const SentTo& sent : {SentTo{4, 1, 8}, SentTo{3, 1, 8}, SentTo{2, 0, 8}}) {
    LoadOnTheMove load = load_on_the_move(0, kRuns, std::nullopt, 0);
    load.sent = {sent};
    EXPECT_TRUE(says(failure_of_move(load), "with a load that is none"));
  }
  for (const double device_s : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    LoadOnTheMove load = load_on_the_move(0, kRuns, std::nullopt, 0);
    load.device_s = device_s;
    EXPECT_TRUE(says(failure_of_move(load), "with a load that is none"));
  }
  // This load is right. PE 1 does not know that it has sent the element.
  EXPECT_TRUE(says(failure_of_move(load_on_the_move(0, kRuns, 1.0, 1)), "which PE 1 has not sent there"));
}

}  // namespace
}  // namespace weft::chare::sync_testing
