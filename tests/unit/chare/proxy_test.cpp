#include "weft/chare/proxy.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Counter : Chare<Counter> {
  Counter() = default;
  Counter(int start_in, std::string name_in) : value(start_in), name(std::move(name_in)) {}

  void add(int amount) { value += amount; }
  int get() const { return value; }
  std::string describe() { return name + where(); }
  std::vector<int> reversed(std::vector<int> numbers) { return {numbers.rbegin(), numbers.rend()}; }
  int on_pe() { return pe(); }
  Task<int> slow_square(const std::vector<int>& numbers) {
    int before = static_cast<int>(numbers.size());
    co_await runtime().sleep(0.0001);
    co_return before* numbers[0];  // the argument outlives the wait
  }
  int divide(int by) {
    if (by == 0) throw std::domain_error("division by zero");
    return value / by;
  }
  Task<int> divide_later(int by) {
    co_await runtime().sleep(0);
    co_return divide(by);
  }
  Task<int> ask(ElementProxy<Counter> other, int by) { co_return co_await other.call<&Counter::divide>(by); }
  void refuse() { throw Error(base::StatusCode::kInvalidArgument, "refused"); }
  Task<> ask_to_refuse(ElementProxy<Counter> other) { co_await other.call<&Counter::refuse>(); }
  void only_movable(std::unique_ptr<int> pointer) { value = *pointer; }
  std::string overloaded(int) { return "int"; }
  std::string overloaded(std::string) { return "string"; }

  int value = 0;
  std::string name;
};

struct ProxyTest : ::testing::TestWithParam<int> {
  void run(const std::function<Task<>(Runtime&)>& main) {
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run(main), "");
  }
};

TEST_P(ProxyTest, SendsAndCallsReachTheRightElement) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {6}, 100, "c ");
    for (int i = 0; i < 6; ++i) counters[i].send<&Counter::add>(i);
    for (int i = 0; i < 6; ++i) EXPECT_EQ((co_await counters[i].call<&Counter::get>()), 100 + i);
    std::vector<int> all = co_await counters.call<&Counter::get>();
    EXPECT_EQ(all, (std::vector<int>{100, 101, 102, 103, 104, 105}));
    std::string text = co_await counters[5].call<&Counter::describe>();
    EXPECT_EQ(text.substr(0, 6), "c weft") << text;
  });
}

TEST_P(ProxyTest, BroadcastReachesEveryElement) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {3, 5});
    counters.send<&Counter::add>(7);
    co_await runtime.quiescence();
    EXPECT_EQ((co_await counters.call<&Counter::get>()), std::vector<int>(15, 7));
  });
}

TEST_P(ProxyTest, CoroutineMethodsKeepTheirArguments) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    std::vector<int> numbers{5, 0, 0};
    EXPECT_EQ((co_await counters[3].call<&Counter::slow_square>(numbers)), 15);
    EXPECT_EQ((co_await counters.call<&Counter::slow_square>(numbers)), std::vector<int>(4, 15));
  });
}

TEST_P(ProxyTest, VoidCallsComplete) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    co_await counters[2].call<&Counter::add>(3);
    co_await counters.call<&Counter::add>(1);
    std::vector<int> all = co_await counters.call<&Counter::get>();
    EXPECT_EQ(all, (std::vector<int>{1, 1, 4, 1}));
  });
}

TEST_P(ProxyTest, ExceptionsTravelToTheAwaiterWithTheirWay) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4}, 12, "");
    for (int element : {0, 3}) {
      try {
        co_await counters[element].call<&Counter::divide_later>(0);
        ADD_FAILURE() << "did not throw";
      } catch (const RemoteError& error) {
        EXPECT_EQ(error.type(), "std::domain_error");
        EXPECT_EQ(error.remote_message(), "division by zero");
        EXPECT_NE(error.traceback().find("divide_later on PE"), std::string::npos) << error.traceback();
      }
    }
    try {
      co_await counters[0].call<&Counter::ask>(counters[3], 0);
      ADD_FAILURE() << "did not throw";
    } catch (const RemoteError& error) {
      EXPECT_NE(error.traceback().find(".divide on PE"), std::string::npos) << error.traceback();
      EXPECT_NE(error.traceback().find(".ask on PE"), std::string::npos) << error.traceback();
    }
    try {
      co_await counters.call<&Counter::divide>(0);
      ADD_FAILURE() << "did not throw";
    } catch (const RemoteError& error) {
      EXPECT_EQ(error.remote_message(), "division by zero");
    }
    EXPECT_EQ((co_await counters[1].call<&Counter::divide>(4)), 3);
  });
}

TEST_P(ProxyTest, AnErrorOfTheCoreHasOneNameOverAnyNumberOfHops) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4});
    for (int element : {0, 3}) {
      try {
        co_await counters[element].call<&Counter::ask_to_refuse>(counters[3 - element]);
        ADD_FAILURE() << "did not throw";
      } catch (const RemoteError& error) {
        EXPECT_EQ(error.type(), "weft.Error");
        EXPECT_EQ(error.remote_message(), "refused");
        EXPECT_NE(error.traceback().find(".refuse on PE"), std::string::npos) << error.traceback();
        EXPECT_NE(error.traceback().find(".ask_to_refuse on PE"), std::string::npos) << error.traceback();
      }
    }
  });
}

TEST_P(ProxyTest, ProxiesTravel) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {4}, 12, "");
    EXPECT_EQ((co_await counters[0].call<&Counter::ask>(counters[3], 4)), 3);
    EXPECT_EQ((co_await counters[3].call<&Counter::ask>(counters[0], 6)), 2);
  });
}

TEST_P(ProxyTest, OverloadsAndMoveOnlyArguments) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {2});
    using Text = std::string (Counter::*)(std::string);
    EXPECT_EQ((co_await counters[1].call<static_cast<Text>(&Counter::overloaded)>("x")), "string");
    for (int i : {0, 1}) {
      co_await counters[i].call<&Counter::only_movable>(std::make_unique<int>(8 + i));
      EXPECT_EQ((co_await counters[i].call<&Counter::get>()), 8 + i);
    }
  });
}

TEST_P(ProxyTest, GroupsAndSingletons) {
  run([](Runtime& runtime) -> Task<> {
    auto group = Group<Counter>::create(runtime, 1, "g");
    std::vector<int> pes = co_await group.call<&Counter::on_pe>();
    for (int pe = 0; pe < runtime.num_pes(); ++pe) EXPECT_EQ(pes[static_cast<std::size_t>(pe)], pe);
    EXPECT_NE(group.on_this_pe(), nullptr);
    int last = runtime.num_pes() - 1;
    auto one = Singleton<Counter>::create(runtime, last, 5, "s");
    EXPECT_EQ((co_await one.element().call<&Counter::on_pe>()), last);
    EXPECT_THROW((Singleton<Counter>::create(runtime, last + 1, 5, "s")), Error);
  });
}

TEST_P(ProxyTest, IndicesOutsideAreErrorsAtTheCaller) {
  run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {2, 2});
    EXPECT_THROW(counters(2, 0), Error);
    EXPECT_THROW(counters[-1], Error);
    co_return;
  });
}

// An index of the program.
struct Patch {
  int level = 0;
  int x = 0;
  Patch(int level_in, int x_in) : level(level_in), x(x_in) {}
  explicit Patch(const Index& index) : Patch(index[0], index[1]) {}
  operator Index() const { return {level, x}; }
};

struct Tile : Chare<Tile> {
  Tile() = default;
  explicit Tile(int value_in) : value(value_in) {}
  int describe() { return 1000 * Patch(index()).level + 10 * Patch(index()).x + value; }
  Task<int> ask(int x) {
    Patch other(index());
    other.x = x;
    co_return co_await proxy()[other].call<&Tile::describe>();
  }
  int value = 0;
};

TEST_P(ProxyTest, TypesThatConvertToAnIndexAreIndices) {
  run([](Runtime& runtime) -> Task<> {
    const auto blocks = Array<Tile>::create_sparse(runtime, {8, 100});
    co_await blocks.insert(Patch(2, 30), 7);
    co_await blocks.insert_on(runtime.num_pes() - 1, Patch(2, 31), 8);
    EXPECT_EQ((co_await blocks[Patch(2, 31)].call<&Tile::describe>()), 2318);
    EXPECT_EQ((co_await blocks[Patch(2, 31)].call<&Tile::ask>(30)), 2307);
    EXPECT_EQ(Patch(blocks[Patch(2, 31)].index()).x, 31);
    const auto section = blocks.section({Patch(2, 31), Patch(2, 30)});
    EXPECT_TRUE(section.contains(Patch(2, 30)));
    const std::vector<int> described = co_await section.call<&Tile::describe>();
    EXPECT_EQ(described, (std::vector<int>{2318, 2307}));
  });
}

INSTANTIATE_TEST_SUITE_P(NumPes, ProxyTest, ::testing::Values(1, 2, 3));

TEST(ProxyFailure, AnExceptionThatNobodyAwaitsNamesPeChareAndMethod) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto counters = Array<Counter>::create(runtime, {2});
    counters[1].send<&Counter::divide_later>(0);
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("Counter[1].divide_later on PE 1"), std::string::npos) << failure;
  EXPECT_NE(failure.find("division by zero"), std::string::npos) << failure;
}

TEST(ProxyPriority, UrgentMessagesOvertake) {
  struct Log : Chare<Log> {
    void note(int what) { seen.push_back(what); }
    std::vector<int> get() { return seen; }
    std::vector<int> seen;
  };
  testing::InProcessJob job(1);
  std::vector<int> seen;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto log = Array<Log>::create(runtime, {1});
    co_await runtime.quiescence();
    log[0].with_priority(10).send<&Log::note>(3);
    log[0].send<&Log::note>(2);
    log[0].with_priority(-10).send<&Log::note>(1);
    co_await runtime.quiescence();
    seen = co_await log[0].call<&Log::get>();
  }),
            "");
  EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace weft::chare
