// Conditions of entry methods.
#include "weft/chare/when.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

constexpr std::size_t kMany = 10'000;  // doubles: more than travel in the message

std::vector<double> numbers(int iteration) {
  std::vector<double> values(kMany);
  std::iota(values.begin(), values.end(), iteration);
  return values;
}

struct Cell : Chare<Cell> {
  Cell() = default;
  explicit Cell(Moved) {}
  void pup(Pup& p) { p | iteration | ran | tokens; }

  // In order of their iterations.
  int step(int number) {
    ran.push_back(number);
    return ++iteration;
  }
  bool is_current(int number) const { return number == iteration; }

  void take(int number, std::vector<double> values) { check(number, values); }
  void view(int number, std::span<const double> values) { check(number, values); }
  void keep(int number, Payload<double> values) { check(number, values.span()); }
  Task<> view_and_wait(int number, std::span<const double> values) {
    co_await runtime::yield_now(runtime());
    check(number, values);
  }
  bool has_first_of(int number, std::span<const double> values) const {
    return is_current(number) && !values.empty() && values[0] == number;
  }
  bool has_first_of_payload(int number, const Payload<double>& values) const {
    return has_first_of(number, values.span());
  }
  void check(int number, std::span<const double> values) {
    const std::vector<double> expected = numbers(number);
    ran.push_back(std::ranges::equal(values, expected) ? number : -1);
    ++iteration;
  }

  // Runs while there are tokens.
  std::string spend(const std::string& name) {
    --tokens;
    return name;
  }
  bool has_token(std::string_view name) const {
    if (name.empty()) throw std::runtime_error("the call has no name");
    return tokens > 0;
  }
  void add_tokens(int count) { tokens += count; }
  // Adds a token when it is resumed, and waits once more.
  Task<> add_and_wait(Future<> first, Future<> second) {
    co_await first;
    ++tokens;
    co_await second;
  }

  void unconditional(int number) { ran.push_back(number); }
  std::vector<int> log() { return ran; }
  int waiting() { return static_cast<int>(num_waiting_calls()); }
  int where_now() { return pe(); }
  void go(int to_pe) { migrate(to_pe); }

  using WhenConditions = weft::WhenConditions<
      When<&Cell::step, &Cell::is_current>, When<&Cell::take, &Cell::is_current>,
      When<&Cell::view, &Cell::has_first_of>, When<&Cell::keep, &Cell::has_first_of_payload>,
      When<&Cell::view_and_wait, &Cell::has_first_of>, When<&Cell::spend, &Cell::has_token>>;

  int iteration = 0;
  int tokens = 0;
  std::vector<int> ran;
};

// It has no conditions, so it pays nothing for those of others.
struct Plain : Chare<Plain> {
  int step(int number) { return number + (load() == nullptr ? 0 : 1000); }
};
static_assert(!EntryMethod<Plain, &Plain::step>::kIsConditional);
static_assert(EntryMethod<Cell, &Cell::step>::kIsConditional);
static_assert(!EntryMethod<Cell, &Cell::add_tokens>::kIsConditional);

std::vector<int> up_to(int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

TEST(When, CallsRunWhenTheirConditionHoldsWhateverTheirOrder) {
  for (const int num_pes : {1, 3}) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", PEs " + std::to_string(num_pes));
      testing::InProcessJob job(num_pes);
      EXPECT_EQ(job.run([seed, num_pes](Runtime& runtime) -> Task<> {
        constexpr int kCount = 150;  // more than run in one turn
        std::mt19937 random(seed);
        std::vector<int> order = up_to(kCount);
        std::ranges::shuffle(order, random);
        auto cells = Array<Cell>::create(runtime, {num_pes});
        co_await cells.created();
        for (int cell = 0; cell < num_pes; ++cell) {
          std::vector<Future<int>> results;
          for (const int number : order) results.push_back(cells[cell].call<&Cell::step>(number));
          for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(co_await results[i], order[i] + 1);
          const std::vector<int> ran = co_await cells[cell].call<&Cell::log>();
          EXPECT_EQ(ran, up_to(kCount));
          EXPECT_EQ(co_await cells[cell].call<&Cell::waiting>(), 0);
        }
      }),
                "");
    }
  }
}

TEST(When, ReadyCallsRunInOrderOfArrival) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {2});
    co_await cells.created();
    for (int cell = 0; cell < 2; ++cell) {
      auto proxy = cells[cell];
      std::string finished;
      for (const char* name : {"a", "b", "c"}) {
        proxy.call<&Cell::spend>(std::string(name)).then([&finished](const Future<std::string>& done) {
          finished += done.get();
        });
      }
      co_await runtime.quiescence();  // calls that wait do not hold it up
      EXPECT_EQ(finished, "");
      EXPECT_EQ(co_await proxy.call<&Cell::waiting>(), 3);
      co_await proxy.call<&Cell::add_tokens>(2);
      co_await runtime.quiescence();
      EXPECT_EQ(finished, "ab");
      co_await proxy.call<&Cell::add_tokens>(1);
      co_await runtime.quiescence();
      EXPECT_EQ(finished, "abc");
    }
  }),
            "");
}

TEST(When, ArgumentsOfEveryFormWait) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {2});
    co_await cells.created();
    for (int cell = 0; cell < 2; ++cell) {
      auto proxy = cells[cell];
      const std::vector<double> third = numbers(3);
      auto waiting = proxy.call<&Cell::view_and_wait>(4, numbers(4));
      auto sent = proxy.send<&Cell::keep>(3, nocopy(third));
      proxy.send<&Cell::view>(2, numbers(2));
      proxy.send<&Cell::take>(1, numbers(1));
      co_await sent;
      EXPECT_EQ((co_await proxy.call<&Cell::log>()).size(), 0U);
      EXPECT_EQ(co_await proxy.call<&Cell::step>(0), 1);
      co_await waiting;
      EXPECT_EQ(co_await proxy.call<&Cell::log>(), up_to(5));
    }
  }),
            "");
}

TEST(When, AResumedCoroutineMakesCallsReady) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {2});
    co_await cells.created();
    Future<> first(runtime);
    Future<> second(runtime);
    auto adding = cells[0].call<&Cell::add_and_wait>(first, second);
    auto spent = cells[0].call<&Cell::spend>("a");
    co_await runtime.quiescence();
    EXPECT_FALSE(spent.state()->is_set());
    first.set();
    EXPECT_EQ(co_await spent, "a");  // the coroutine has not ended
    EXPECT_FALSE(adding.state()->is_set());
    second.set();
    co_await adding;
  }),
            "");
}

TEST(When, AnExceptionOfAConditionGoesToTheCaller) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {2});
    co_await cells.created();
    for (int cell = 0; cell < 2; ++cell) {
      co_await cells[cell].call<&Cell::add_tokens>(1);
      const std::string error = co_await error_of(cells[cell].call<&Cell::spend>(""));
      EXPECT_TRUE(says(error, "the call has no name")) << error;
      EXPECT_TRUE(says(error, "has_token")) << error;
      EXPECT_EQ(co_await cells[cell].call<&Cell::spend>("a"), "a");  // the token is still there
    }
  }),
            "");
  const std::string failure = testing::InProcessJob(1).run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {1});
    co_await cells.created();
    cells[0].send<&Cell::spend>("");
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(says(failure, "the call has no name")) << failure;
}

TEST(When, ACallToAllElementsWaitsInEach) {
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {5});
    auto results = cells.call<&Cell::spend>("a");
    auto views = cells.call<&Cell::view>(1, numbers(1));
    for (const int cell : {3, 0, 4, 1, 2}) {
      co_await runtime.quiescence();
      EXPECT_FALSE(results.state()->is_set());
      cells[cell].send<&Cell::add_tokens>(1);
    }
    EXPECT_EQ(co_await results, std::vector<std::string>(5, "a"));
    co_await cells.call<&Cell::step>(0);
    co_await views;
    for (const std::vector<int>& ran : co_await cells.call<&Cell::log>()) EXPECT_EQ(ran, up_to(2));
  }),
            "");
}

TEST(When, WaitingCallsMoveWithTheirChare) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    testing::InProcessJob job(3);
    EXPECT_EQ(job.run([seed](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create(runtime, {4});
      std::mt19937 random(seed);
      auto all = cells.call<&Cell::step>(5);
      for (int cell = 0; cell < 4; ++cell) {
        auto proxy = cells[cell];
        const std::vector<double> third = numbers(3);
        auto waiting = proxy.call<&Cell::view_and_wait>(4, numbers(4));
        auto sent = proxy.send<&Cell::keep>(3, nocopy(third));
        proxy.send<&Cell::view>(2, numbers(2));
        auto taken = proxy.call<&Cell::take>(1, numbers(1));
        co_await sent;
        for (int move = 0; move < 3; ++move) {
          const int to_pe = static_cast<int>(random() % 3);
          co_await runtime.quiescence();  // no buffer is landing any more
          co_await proxy.call<&Cell::go>(to_pe);
          co_await runtime.quiescence();
          EXPECT_EQ(co_await proxy.call<&Cell::where_now>(), to_pe);
          EXPECT_EQ(co_await proxy.call<&Cell::waiting>(), 5);
        }
        EXPECT_EQ(co_await proxy.call<&Cell::step>(0), 1);
        co_await taken;
        co_await waiting;
        co_await runtime.quiescence();
        EXPECT_EQ(co_await proxy.call<&Cell::log>(), up_to(6));
      }
      EXPECT_EQ(co_await all, std::vector<int>(4, 6));
    }),
              "");
  }
}

TEST(When, OrderOfArrivalSurvivesAMove) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {1});
    std::string finished;
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      cells[0].call<&Cell::spend>(std::string(name)).then([&finished](const Future<std::string>& done) {
        finished += done.get();
      });
      co_await runtime.quiescence();
      co_await cells[0].call<&Cell::go>(finished.size() % 2 == 0 ? 1 : 0);
      co_await runtime.quiescence();
    }
    co_await cells[0].call<&Cell::add_tokens>(5);
    co_await runtime.quiescence();
    EXPECT_EQ(finished, "abcde");
  }),
            "");
}

TEST(When, TheEndOfTheCollectionEndsWaitingCalls) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {2});
    auto local = cells[0].call<&Cell::spend>("a");
    auto remote = cells[1].call<&Cell::spend>("b");
    auto all = cells.call<&Cell::spend>("c");
    co_await runtime.quiescence();
    co_await cells.destroy();
    std::vector<std::string> errors;
    errors.push_back(co_await error_of(local));
    errors.push_back(co_await error_of(remote));
    errors.push_back(co_await error_of(all));
    for (const std::string& error : errors) {
      EXPECT_TRUE(says(error, "still waits for its condition")) << error;
      EXPECT_TRUE(says(error, "spend")) << error;
      EXPECT_TRUE(says(error, "has been destroyed")) << error;
    }
  }),
            "");
  const std::string failure = testing::InProcessJob(1).run([](Runtime& runtime) -> Task<> {
    auto cells = Array<Cell>::create(runtime, {1});
    cells[0].send<&Cell::spend>("a");
    co_await runtime.quiescence();
    co_await cells.destroy();
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(says(failure, "still waits for its condition")) << failure;
}

// Also if the chare is on its way to another PE then.
TEST(When, TheEndOfTheCollectionEndsWaitingCallsOfAChareThatMoves) {
  for (int turns = 0; turns < 12; ++turns) {
    testing::InProcessJob job(3);
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto cells = Array<Cell>::create(runtime, Shape(4).on_pe(1));
      std::vector<Future<std::string>> waiting;
      for (int i = 0; i < 4; ++i) waiting.push_back(cells[i].call<&Cell::spend>("a"));
      co_await runtime.quiescence();
      for (int i = 0; i < 4; ++i) cells[i].send<&Cell::go>(2 * (i % 2));
      for (int i = 0; i < turns; ++i) co_await yield_now(runtime);
      co_await cells.destroy();
      for (const Future<std::string>& call : waiting) {
        const std::string error = co_await error_of(call);
        EXPECT_TRUE(says(error, "has been destroyed")) << error;
      }
    }),
              "")
        << turns;
  }
}

TEST(When, AClassWithoutConditionsIsNotMeasured) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto plain = Array<Plain>::create(runtime, {1});
    co_await plain.created();
    EXPECT_EQ(co_await plain[0].call<&Plain::step>(1), 1);
    auto cells = Array<Cell>::create(runtime, {1});
    co_await cells.created();
    EXPECT_EQ(cells.local(0)->load_s(), 0);
    EXPECT_THROW(cells.local(0)->at_sync(), base::Error);
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
