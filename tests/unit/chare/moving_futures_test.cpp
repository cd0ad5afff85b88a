// Futures in the state of elements that move: awaited on the new PE, set from anywhere, before, while and after they move.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "runtime/future_table.h"
#include "runtime/message/handlers.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using runtime::FutureTable;
using test_support::error_of;
using test_support::says;
using Bytes = std::vector<std::uint8_t>;

// What the tables of all PEs hold for copies.
std::size_t num_links(testing::InProcessJob& job) {
  std::size_t count = 0;
  for (int pe = 0; pe < job.num_pes(); ++pe) count += FutureTable::of(job.runtime(pe)).num_links();
  return count;
}
std::size_t num_mirrors(testing::InProcessJob& job) {
  std::size_t count = 0;
  for (int pe = 0; pe < job.num_pes(); ++pe) count += FutureTable::of(job.runtime(pe)).num_mirrors();
  return count;
}

std::exception_ptr oops() { return std::make_exception_ptr(std::runtime_error("oops")); }

// A callback holds its future, as long as that is not set.
bool registers_callbacks = false;
int num_called = 0;

struct Keeper : Chare<Keeper> {
  void pup(Pup& p) { p | text | same | list | owned | bytes | ready_on_arrival; }
  void migrated() override {
    ready_on_arrival = text.state() != nullptr && text.is_ready();
    if (text.state() == nullptr || text.is_ready() || !registers_callbacks) return;
    text.then([](const Future<std::string>&) { ++num_called; });  // the element may have moved on
  }

  Future<std::string> make() { return same = text = Future<std::string>(runtime()); }
  FutureList<int> make_list(int count) {
    return list = FutureList<int>(runtime(), static_cast<std::uint64_t>(count));
  }
  Future<std::unique_ptr<int>> make_owned() { return owned = Future<std::unique_ptr<int>>(runtime()); }
  Future<Bytes> make_bytes() { return bytes = Future<Bytes>(runtime()); }
  void keep(Future<std::string> future) { text = std::move(future); }
  void give(ElementProxy<Keeper> to) { to.send<&Keeper::keep>(text); }
  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }
  bool was_ready_on_arrival() { return ready_on_arrival; }
  void set_own(std::string value) { text.set(std::move(value)); }
  Task<std::string> wait() {
    const std::string value = co_await text;
    if (same.state() != nullptr) {
      EXPECT_EQ(co_await same, value);
    }
    co_return value;
  }
  Task<std::vector<int>> wait_list() { co_return co_await list; }
  Task<int> take_owned() { co_return *co_await owned; }
  Task<Bytes> wait_bytes() { co_return co_await bytes; }

  Future<std::string> text;
  Future<std::string> same;
  FutureList<int> list;
  Future<std::unique_ptr<int>> owned;
  Future<Bytes> bytes;
  bool ready_on_arrival = false;
};

struct Hand : Chare<Hand> {
  void set(Future<std::string> future, std::string value) { future.set(std::move(value)); }
  void add(FutureList<int> list, int value) { list.set(value); }
  void fail(Future<std::string> future) { future.set_error(oops()); }
};

class MovingFutures : public ::testing::TestWithParam<const char*> {};

// The value is set before, while and after the element moves, by each PE, along ways that come back.
TEST_P(MovingFutures, AreAwaitedWhereTheElementIs) {
  testing::InProcessJob job(3, GetParam());
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto hands = Group<Hand>::create(runtime);
    co_await hands.created();
    const std::vector<std::vector<int>> ways = {{1}, {2, 1}, {1, 0}, {1, 2, 1}, {1, 2, 0, 2}};
    for (const std::vector<int>& way : ways) {
      for (std::size_t moved = 0; moved <= way.size(); ++moved) {
        for (int setter = 0; setter < 3; ++setter) {
          for (const bool settled : {true, false}) {
            auto keepers = Array<Keeper>::create(runtime, Shape(1).on_pe(0));
            const std::string value = "set by PE " + std::to_string(setter);
            {
              const Future<std::string> future = co_await keepers[0].call<&Keeper::make>();
              for (std::size_t i = 0; i < way.size(); ++i) {
                if (i == moved) hands[setter].send<&Hand::set>(future, value);
                if (settled) co_await runtime.quiescence();
                co_await keepers[0].call<&Keeper::go>(way[i]);
              }
              if (moved == way.size()) hands[setter].send<&Hand::set>(future, value);
            }
            EXPECT_EQ(co_await keepers[0].call<&Keeper::wait>(), value);
            EXPECT_EQ(co_await keepers[0].call<&Keeper::where_now>(), way.back());
            if (moved == 0 && settled) {
              EXPECT_TRUE(co_await keepers[0].call<&Keeper::was_ready_on_arrival>());
            }
            co_await keepers.destroy();
            co_await runtime.quiescence();
            EXPECT_EQ(num_links(job), 0U);
            EXPECT_EQ(num_mirrors(job), 0U);
          }
        }
      }
    }
  }),
            "");
}

TEST_P(MovingFutures, CarryListsErrorsMoveOnlyAndLargeValues) {
  testing::InProcessJob job(3, GetParam());
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto hands = Group<Hand>::create(runtime);
    for (const bool first : {true, false}) {  // set before the move, or after it
      auto keepers = Array<Keeper>::create(runtime, Shape(1).on_pe(0));
      auto list = co_await keepers[0].call<&Keeper::make_list>(3);
      auto owned = co_await keepers[0].call<&Keeper::make_owned>();
      auto bytes = co_await keepers[0].call<&Keeper::make_bytes>();
      auto text = co_await keepers[0].call<&Keeper::make>();
      Bytes large(300'000);
      std::iota(large.begin(), large.end(), std::uint8_t{3});
      hands[1].send<&Hand::add>(list, 5);
      co_await runtime.quiescence();
      if (!first) co_await keepers[0].call<&Keeper::go>(2);
      hands[2].send<&Hand::add>(list, 6);
      hands[1].send<&Hand::add>(list, 7);
      hands[1].send<&Hand::fail>(text);
      owned.set(std::make_unique<int>(42));
      bytes.set(large);
      if (first) {
        co_await runtime.quiescence();
        co_await keepers[0].call<&Keeper::go>(2);
      }
      std::vector<int> values = co_await keepers[0].call<&Keeper::wait_list>();
      EXPECT_EQ(values.at(0), 5);
      EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0), 18);
      EXPECT_EQ(co_await keepers[0].call<&Keeper::take_owned>(), 42);
      EXPECT_TRUE(says(co_await error_of(keepers[0].call<&Keeper::take_owned>()), "already taken"));
      EXPECT_EQ(co_await keepers[0].call<&Keeper::wait_bytes>(), large);
      EXPECT_TRUE(says(co_await error_of(keepers[0].call<&Keeper::wait>()), "oops"));
      // A value that was taken stays so.
      co_await keepers[0].call<&Keeper::go>(1);
      EXPECT_EQ(co_await keepers[0].call<&Keeper::where_now>(), 1);
      EXPECT_TRUE(says(co_await error_of(keepers[0].call<&Keeper::take_owned>()), "already taken"));
      EXPECT_TRUE(says(co_await error_of(keepers[0].call<&Keeper::wait>()), "oops"));
      EXPECT_EQ(co_await keepers[0].call<&Keeper::wait_bytes>(), large);
      co_await keepers.destroy();
    }
    co_await runtime.quiescence();
    EXPECT_EQ(num_links(job), 0U);
    EXPECT_EQ(num_mirrors(job), 0U);
  }),
            "");
}

TEST_P(MovingFutures, SeveralHoldersGetTheValueEach) {
  testing::InProcessJob job(4, GetParam());
  num_called = 0;
  registers_callbacks = true;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, Shape(4).on_pe(0));
    co_await keepers.created();
    Future<std::string> future(runtime);
    for (int i = 0; i < 4; ++i) keepers.local(i)->keep(future);
    for (int i = 1; i < 4; ++i) keepers[i].send<&Keeper::go>(i);
    co_await runtime.quiescence();
    keepers[1].send<&Keeper::go>(3);             // a second holder on PE 3
    keepers[2].send<&Keeper::give>(keepers[0]);  // a plain copy comes home
    co_await runtime.quiescence();
    std::vector<Future<std::string>> waits;
    for (int i = 0; i < 4; ++i) waits.push_back(keepers[i].call<&Keeper::wait>());
    co_await runtime.quiescence();
    keepers[3].send<&Keeper::set_own>("for all");  // through a copy that has moved
    for (auto& wait : waits) EXPECT_EQ(co_await wait, "for all");
    EXPECT_EQ(co_await future, "for all");
    EXPECT_EQ(num_called, 4);  // PEs 1, 2, 3, and 3 again
    registers_callbacks = false;
    co_await keepers.destroy();
    co_await runtime.quiescence();
    EXPECT_EQ(num_links(job), 0U);
    EXPECT_EQ(num_mirrors(job), 0U);
  }),
            "");
}

TEST_P(MovingFutures, ASecondSetThroughACopyThatHasMovedEndsTheJob) {
  testing::InProcessJob job(2, GetParam());
  const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, Shape(1).on_pe(0));
    auto future = co_await keepers[0].call<&Keeper::make>();
    co_await keepers[0].call<&Keeper::go>(1);
    future.set("once");
    EXPECT_EQ(co_await keepers[0].call<&Keeper::wait>(), "once");
    future = {};
    keepers[0].send<&Keeper::set_own>("twice");
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "PE 1 set a future of PE 0 that was set before"));
}

// A future that is set late does not leave something on each PE for each move.
TEST_P(MovingFutures, LinksDoNotGrowWithTheNumberOfMoves) {
  testing::InProcessJob job(4, GetParam());
  std::minstd_rand chance(7);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto keepers = Array<Keeper>::create(runtime, Shape(2).on_pe(0));
    auto future = co_await keepers[0].call<&Keeper::make>();
    for (int step = 0; step < 300; ++step) {
      co_await keepers[0].call<&Keeper::go>(static_cast<int>(chance() % 4));
      co_await keepers[0].call<&Keeper::where_now>();
      if (step % 10 == 0) co_await runtime.quiescence();
      EXPECT_LE(num_links(job), 20U);
    }
    co_await runtime.quiescence();
    EXPECT_LE(num_links(job), 3U);
    EXPECT_LE(num_mirrors(job), 3U);
    future.set("late");
    EXPECT_EQ(co_await keepers[0].call<&Keeper::wait>(), "late");
    // A holder that goes before the value leaves nothing.
    auto never = co_await keepers[1].call<&Keeper::make>();
    for (int pe : {1, 2, 3, 1}) {
      co_await keepers[1].call<&Keeper::go>(pe);
      co_await keepers[1].call<&Keeper::where_now>();
    }
    co_await keepers.destroy();
    co_await runtime.quiescence();
    EXPECT_EQ(num_links(job), 0U);
    EXPECT_EQ(num_mirrors(job), 0U);
  }),
            "");
}

// The state of an element that arrives after the end of its collection is not unpacked.
TEST_P(MovingFutures, LeaveNothingIfTheCollectionEndsWhileTheyMove) {
  testing::InProcessJob job(3, GetParam());
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    for (int round = 0; round < 12; ++round) {
      auto keepers = Array<Keeper>::create(runtime, {6});
      std::vector<Future<std::string>> futures;
      for (int i = 0; i < 6; ++i) futures.push_back(co_await keepers[i].call<&Keeper::make>());
      for (int i = 0; i < 6; ++i) keepers[i].send<&Keeper::go>((i + round) % 3);
      for (int turn = 0; turn < round; ++turn) co_await yield_now(runtime);
      co_await keepers.destroy();
      for (auto& future : futures) future.set("late");
      co_await runtime.quiescence();
      EXPECT_EQ(num_links(job), 0U);
      EXPECT_EQ(num_mirrors(job), 0U);
    }
  }),
            "");
}

// --- Random traffic

struct Collector : Chare<Collector> {
  void pup(Pup& p) { p | futures | sum; }
  Future<int> add() { return futures.emplace_back(runtime()); }
  void go(int to_pe) {
    if (num_suspended() == 0) migrate(to_pe);
  }
  Task<int> take() {  // awaits the oldest
    Future<int> oldest = futures.front();
    futures.erase(futures.begin());
    const int value = co_await oldest;
    co_return sum += value;
  }
  std::vector<Future<int>> futures;
  int sum = 0;
};

TEST_P(MovingFutures, LoseAndDoubleNothingUnderRandomTraffic) {
  const char* const given = std::getenv("WEFT_TEST_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : std::random_device()();
  std::cout << "WEFT_TEST_SEED=" << seed << "\n";
  testing::InProcessJob job(4, GetParam());
  std::mt19937 chance(seed);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    constexpr int kElements = 5;
    auto all = Array<Collector>::create(runtime, {kElements});
    std::vector<std::vector<Future<int>>> unset(kElements);
    std::vector<int> made(kElements);
    std::vector<int> expected(kElements);
    for (int step = 0; step < 1500; ++step) {
      const auto i = static_cast<int>(chance() % kElements);
      const auto n = static_cast<std::size_t>(i);
      switch (chance() % 5) {
        case 0:
          unset[n].push_back(co_await all[i].call<&Collector::add>());
          ++made[n];
          break;
        case 1:
          if (unset[n].empty()) break;
          std::swap(unset[n][chance() % unset[n].size()], unset[n].back());
          expected[n] += step;
          unset[n].back().set(step);
          unset[n].pop_back();
          break;
        case 2:
          co_await yield_now(runtime);
          break;
        default:
          all[i].send<&Collector::go>(static_cast<int>(chance() % 4));
      }
    }
    for (int i = 0; i < kElements; ++i) {
      const auto n = static_cast<std::size_t>(i);
      for (Future<int>& future : unset[n]) future.set(1);
      expected[n] += static_cast<int>(unset[n].size());
      int sum = 0;
      for (int k = 0; k < made[n]; ++k) sum = co_await all[i].call<&Collector::take>();
      EXPECT_EQ(sum, expected[n]) << "element " << i;
    }
    unset.clear();
    co_await all.destroy();
    co_await runtime.quiescence();
    EXPECT_EQ(num_links(job), 0U);
    EXPECT_EQ(num_mirrors(job), 0U);
  }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Machines, MovingFutures, ::testing::Values("loopback", "ucx"),
                         [](const auto& one) { return std::string(one.param); });

// --- Claims of peers

TEST(MovingFuture, AnswersOnePeAndIgnoresNumbersThatItDoesNotKnow) {
  testing::InProcessJob job(3);
  const std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    const auto ask = [&job](int from, runtime::HandlerId handler, std::uint64_t link) {
      Runtime& peer = job.runtime(from);
      peer.send(0, runtime::Message::pack(peer, handler, link));
    };
    const auto release = [&job](int from, const std::vector<std::uint64_t>& links) {
      Runtime& peer = job.runtime(from);
      peer.send(0, runtime::Message::pack(peer, runtime::kFutureReleaseHandler, links));
    };
    Future<int> future(runtime);
    const std::uint64_t link = FutureTable::of(runtime).link(*future.state());
    release(1, {});
    for (const std::uint64_t wrong : {std::uint64_t{0}, link + 1, ~std::uint64_t{0}}) {
      ask(1, runtime::kFutureWantHandler, wrong);
      release(1, {wrong});
    }
    // A value for no mirror.
    job.runtime(1).send(0, runtime::Message::pack(job.runtime(1), runtime::kFutureCopyHandler,
                                                  std::uint32_t{0}, std::uint64_t{77}, false, 3));
    ask(1, runtime::kFutureWantHandler, link);
    ask(1, runtime::kFutureWantHandler, link);
    co_await runtime.quiescence();
    EXPECT_EQ(FutureTable::of(runtime).num_links(), 1U);
    ask(2, runtime::kFutureWantHandler, link);
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "PE 2 asks PE 0 for the value of a future whose copy is on PE 1"));
}

// The links of a future are released in any order.
TEST(MovingFuture, ReleasesItsLinksInAnyOrder) {
  constexpr int kLinks = 1000;
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    FutureTable& table = FutureTable::of(runtime);
    Future<int> first(runtime);
    Future<int> second(runtime);
    std::vector<std::uint64_t> links;
    for (int i = 0; i < kLinks; ++i) {
      links.push_back(table.link(*(i % 3 == 0 ? first : second).state()));
    }
    std::ranges::shuffle(links, std::mt19937(20261124));
    const std::uint64_t last = links.back();
    links.pop_back();
    Runtime& peer = job.runtime(1);
    peer.send(0, runtime::Message::pack(peer, runtime::kFutureReleaseHandler, links));
    co_await runtime.quiescence();
    EXPECT_EQ(table.num_links(), 1U);
    peer.send(0, runtime::Message::pack(peer, runtime::kFutureReleaseHandler, std::vector{last, last}));
    co_await runtime.quiescence();
    EXPECT_EQ(table.num_links(), 0U);
    // Nothing is left that a value would be sent for.
    first.set(1);
    second.set(2);
  }),
            "");
}

TEST(MovingFuture, RefusesHandlesOfNoPe) {
  testing::InProcessJob job(2);
  Runtime& runtime = job.runtime(0);
  using Kind = runtime::FutureHandle::Kind;
  for (const runtime::FutureHandle& wrong : {runtime::FutureHandle{{2, 1}, Kind::kSetter, {}},
                                             runtime::FutureHandle{{1, 1}, Kind::kLinked, {2, 1}},
                                             runtime::FutureHandle{{1, 1}, Kind::kLinked, {0, 1}},
                                             runtime::FutureHandle{{1, 1}, Kind::kLinked, {1, 0}},
                                             runtime::FutureHandle{{1, 1}, Kind::kOutcome, {}}}) {
    std::vector<std::byte> bytes = base::pack(wrong, &runtime);
    if (wrong.kind == Kind::kOutcome) bytes.back() = std::byte{3};  // no known kind
    EXPECT_THROW(static_cast<void>(base::unpack<Future<int>>(bytes, &runtime)), Error);
    EXPECT_THROW(static_cast<void>(base::unpack<FutureList<int>>(bytes, &runtime)), Error);
  }
  EXPECT_EQ(FutureTable::of(runtime).num_mirrors(), 0U);
}

}  // namespace
}  // namespace weft::chare
