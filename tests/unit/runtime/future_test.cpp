#include "weft/runtime/future.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <ranges>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

// Sets the futures that are sent to it, on its own PE.
struct Setter : Chare<Setter> {
  void set(Future<std::string> future) { future.set("set on PE " + std::to_string(pe())); }
  void fail(Future<int> future) {
    future.set_error(std::make_exception_ptr(std::runtime_error("no value on PE " + std::to_string(pe()))));
  }
  void pass_on(Future<std::string> future, int to) { proxy()[to].send<&Setter::set>(future); }
  void set_back(Future<std::string> future, Future<> done) {
    future.set("home");
    done.set();
  }
};

TEST(Future, SetTravelsBackFromAnotherPe) {
  testing::InProcessJob job(3);
  std::string value;
  std::string passed;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<Setter>::create(runtime);
    Future<std::string> direct(runtime);
    setters[2].send<&Setter::set>(direct);
    value = co_await direct;
    Future<std::string> twice(runtime);
    setters[1].send<&Setter::pass_on>(twice, 2);
    passed = co_await twice;
  }),
            "");
  EXPECT_EQ(value, "set on PE 2");
  EXPECT_EQ(passed, "set on PE 2");
}

TEST(Future, ErrorsTravelBack) {
  testing::InProcessJob job(2);
  std::string message;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<Setter>::create(runtime);
    Future<int> future(runtime);
    setters[1].send<&Setter::fail>(future);
    try {
      co_await future;
    } catch (const RemoteError& error) {
      message = error.remote_message();
    }
  }),
            "");
  EXPECT_EQ(message, "no value on PE 1");
}

TEST(Future, ComesHomeAsItself) {
  testing::InProcessJob job(2);
  bool same = false;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<Setter>::create(runtime);
    Future<std::string> future(runtime);
    Future<> done(runtime);
    setters[0].send<&Setter::set_back>(future, done);  // a local call: the same state
    co_await done;
    same = future.is_ready() && future.get() == "home";
  }),
            "");
  EXPECT_TRUE(same);
}

TEST(Future, SecondSetIsAnError) {
  testing::InProcessJob job(1);
  Future<int> future(job.runtime(0));
  future.set(1);
  EXPECT_THROW(future.set(2), Error);
  EXPECT_EQ(future.get(), 1);
}

TEST(Future, CallbacksRunOnceEachInOrder) {
  testing::InProcessJob job(1);
  std::vector<int> order;
  Future<int> future(job.runtime(0));
  future.then([&order](const Future<int>& ready) { order.push_back(ready.get()); });
  future.then([&order](const Future<int>& ready) { order.push_back(ready.get() + 1); });
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    future.set(10);
    future.then([&order](const Future<int>& ready) { order.push_back(ready.get() + 2); });
    co_await runtime.sleep(0);
  }),
            "");
  EXPECT_EQ(order, (std::vector<int>{10, 11, 12}));
}

// A list that is walked for each waiter, when it comes or when it is abandoned, takes minutes for so many.
TEST(Future, ManyWaitersAreCalledInOrder) {
  constexpr int kWaiters = 400'000;
  testing::InProcessJob job(1);
  Future<int> future(job.runtime(0));
  int called = 0;
  Future<int> never(job.runtime(0));
  for (int i = 0; i < kWaiters; ++i) never.then([](const Future<int>&) { ADD_FAILURE() << "called"; });
  for (int i = 0; i < kWaiters; ++i) {
    future.then([&called, i](const Future<int>&) { called += called == i ? 1 : 0; });
  }
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    future.set(1);
    while (called < kWaiters) co_await runtime.sleep(0);
  }),
            "");
  EXPECT_EQ(called, kWaiters);
}

// A walk for each waiter that gives up takes minutes for so many.
TEST(Future, ManyWaitersGiveUpInAnyOrder) {
  constexpr int kWaiters = 200'000;
  struct Waiter : Work {
    Waiter() : Work(&Waiter::call) {}
    static void call(Work* self, Runtime&, WorkAction) {
      auto* const waiter = static_cast<Waiter*>(self);
      waiter->order->push_back(waiter->number);
    }
    int number = 0;
    std::vector<int>* order = nullptr;
  };
  for (const int seed : {0, 1, 2}) {
    testing::InProcessJob job(1);
    Future<> future(job.runtime(0));
    FutureState& state = *future.state();
    std::vector<int> order;
    std::vector<Waiter> waiters(kWaiters);
    const auto wait = [&](int number) {
      waiters[number].number = number;
      waiters[number].order = &order;
      state.when_ready(&waiters[number]);
    };
    std::vector<int> leaving;  // in reverse, then in other orders
    for (int i = 0; i < kWaiters; ++i) {
      wait(i);
      if (i % 4 != 0) leaving.push_back(kWaiters - 1 - i);
    }
    if (seed != 0) std::ranges::shuffle(leaving, std::mt19937(static_cast<unsigned>(seed)));
    for (const int number : leaving) state.forget(&waiters[number]);
    state.forget(&waiters[leaving.front()]);  // it waits no more
    std::vector<int> expected;
    for (int i = kWaiters - 1; i >= 0; --i) {
      if ((kWaiters - 1 - i) % 4 == 0) expected.push_back(i);
    }
    std::ranges::reverse(expected);
    // They come back behind the others, and one leaves again.
    for (const int number : {leaving[0], leaving[1], leaving[2]}) wait(number);
    state.forget(&waiters[leaving[1]]);
    expected.insert(expected.end(), {leaving[0], leaving[2]});
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      future.set();
      while (order.size() < expected.size()) co_await runtime.sleep(0);
    }),
              "");
    EXPECT_TRUE(order == expected) << "seed " << seed;
  }
}

TEST(Future, AllWaitersGiveUpAndOthersCome) {
  testing::InProcessJob job(1);
  Future<> future(job.runtime(0));
  FutureState& state = *future.state();
  std::vector<Work> waiters(100, Work([](Work*, Runtime&, WorkAction) { ADD_FAILURE() << "called"; }));
  for (int round = 0; round < 3; ++round) {
    for (Work& waiter : waiters) state.when_ready(&waiter);
    for (Work& waiter : std::views::reverse(waiters)) state.forget(&waiter);
  }
  EXPECT_EQ(job.run([&](Runtime&) -> Task<> {
    future.set();
    co_await future;
  }),
            "");
}

TEST(Future, CallbacksOfFuturesThatAreNeverSetGoWithTheRuntime) {
  auto alive = std::make_shared<int>(1);
  {
    testing::InProcessJob job(1);
    Future<int> never(job.runtime(0));
    for (int i = 0; i < 3; ++i) never.then([alive](const Future<int>&) { ADD_FAILURE() << "called"; });
    EXPECT_EQ(alive.use_count(), 4);
    EXPECT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Future, AnExceptionInACallbackEndsTheJobAndSaysWhere) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    Future<int> future(runtime);
    future.then([](const Future<int>&) { throw std::runtime_error("from a callback"); });
    future.set(1);
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("from a callback"), std::string::npos) << failure;
  EXPECT_NE(failure.find("PE 0"), std::string::npos) << failure;
}

TEST(Future, ExportedFuturesThatAreSetAtHomeAreLetGo) {
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  std::uint64_t id = 0;
  std::vector<std::byte> sent;
  {
    Future<std::string> future(runtime);
    sent = base::pack(future, &runtime);
    id = future.state()->address().id;
    EXPECT_EQ(base::unpack<Future<std::string>>(sent, &runtime).state(), future.state());
    future.set("x");
    EXPECT_NE(find_exported_future(runtime, id), nullptr) << "still held here";
  }
  EXPECT_EQ(find_exported_future(runtime, id), nullptr);
  auto late = base::unpack<Future<std::string>>(sent, &runtime);
  EXPECT_THROW(static_cast<void>(late.get()), Error) << "a copy that comes home later says so";
}

TEST(Future, AFrameThatIsGoneIsNotResumed) {
  int resumed = 0;
  {
    testing::InProcessJob job(1);
    Runtime& runtime = job.runtime(0);
    Future<> shared(runtime);
    struct SetsAtItsEnd {
      Future<> future;
      ~SetsAtItsEnd() { future.set(); }
    };
    auto setter = [](Runtime& rt, Future<> future) -> Task<> {
      SetsAtItsEnd guard{future};
      co_await rt.make_future<>();
    };
    auto waiter = [](Future<> future, int* count) -> Task<> {
      co_await future;
      ++*count;
    };
    runtime.spawn(setter(runtime, shared), "setter");
    runtime.spawn(waiter(shared, &resumed), "waiter");  // abandoned first
  }
  EXPECT_EQ(resumed, 0);
}

TEST(Future, ASetAfterASetFromAfarIsReported) {
  testing::InProcessJob job(2);
  std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    auto setters = Group<Setter>::create(runtime);
    Future<std::string> future(runtime);
    setters[1].send<&Setter::set>(future);
    setters[1].send<&Setter::set>(future);
    co_await runtime.quiescence();
  });
  EXPECT_NE(failure.find("set exactly once"), std::string::npos) << failure;
}

TEST(Future, TimersFireInOrderOfTime) {
  testing::InProcessJob job(1);
  std::vector<int> order;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    runtime.sleep(0.002).then([&](const Future<>&) { order.push_back(2); });
    runtime.sleep(0.001).then([&](const Future<>&) { order.push_back(1); });
    co_await runtime.sleep(0.003);
  }),
            "");
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace weft::runtime
