#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;
// How many elements live, and which coroutines they run, on all PEs of the test's job.
int alive = 0;

struct Counted : Chare<Counted> {
  Counted() { ++alive; }
  ~Counted() override { --alive; }

  int touch() { return ++touched; }
  void note() { ++touched; }
  // Ends when `gate` is set.
  Task<int> wait(Future<int> gate, Future<> begun) {
    begun.set();
    const int value = co_await gate;
    co_return value + touched;
  }
  void give(int value, Future<int> sum) { contribute(value, Reducer::kSum, target_of(sum)); }
  Task<int> take_part(int value) { co_return co_await allreduce(value, Reducer::kSum); }
  Task<> contribute_after(Future<int> gate, Future<> begun) {
    begun.set();
    co_await gate;
    co_await allreduce(1, Reducer::kSum);
  }
  Task<> destroy_all() { co_await proxy().destroy(); }
  void fail(bool closed) {
    if (closed) throw base::Error(base::StatusCode::kClosed, "what it waited for has ended");
    throw std::runtime_error("a mistake");
  }
  Task<> fail_after(bool closed, Future<> gate, Future<> begun) {
    begun.set();
    co_await gate;
    fail(closed);
  }

  int touched = 0;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& known) {
    return known.what();
  }
}

template <class Call>
std::string thrown_by(Call call) {
  try {
    call();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), base::StatusCode::kClosed) << error.what();
    return error.what();
  }
  return "";
}

TEST(Destruction, FreesTheElementsOfEveryKindOnEveryPe) {
  for (int num_pes : {1, 2, 3, 11}) {
    alive = 0;
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {2, 5});
      auto table = Array<Counted>::create(runtime, Shape(3).with_table({0, 0, 0}));
      auto group = Group<Counted>::create(runtime);
      auto singleton = Singleton<Counted>::create(runtime, num_pes - 1);
      co_await array.call<&Counted::touch>();
      co_await group.call<&Counted::touch>();
      co_await singleton.element().call<&Counted::touch>();
      co_await table.call<&Counted::touch>();
      EXPECT_EQ(alive, 14 + num_pes);
      co_await table.destroy();
      EXPECT_EQ(alive, 11 + num_pes);
      co_await array.destroy();
      EXPECT_EQ(alive, 1 + num_pes);
      co_await group.destroy();
      EXPECT_EQ(alive, 1);
      co_await singleton.destroy();
      EXPECT_EQ(alive, 0);
      EXPECT_TRUE(array.collection().is_destroyed());
      EXPECT_EQ(array.collection().element_name(9).substr(array.collection().name().size()), "[1, 4]");
    }),
              "");
    EXPECT_EQ(alive, 0);
  }
}

// On every PE: makes, uses and destroys collections, with the others.
struct Maker : Chare<Maker> {
  Task<int> generations(int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) {
      auto made = Array<Counted>::create(runtime(), {5});
      for (int touched : co_await made.call<&Counted::touch>()) sum += touched;
      co_await made.destroy();
    }
    co_return sum;
  }
  // Destroys what another PE may not have made yet.
  Task<> at_once() {
    auto made = Array<Counted>::create(runtime(), {5});
    co_await made.destroy();
  }
  Task<bool> destroy_given(CollectionProxy<Counted> given) {
    try {
      co_await given.destroy();
      co_return true;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.code(), base::StatusCode::kClosed);
      co_return false;
    }
  }
  Task<> touch_given(CollectionProxy<Counted> given) { co_await given[0].call<&Counted::touch>(); }
};

TEST(Destruction, ManyPesMakeAndDestroyAtTheSameTime) {
  alive = 0;
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto makers = Group<Maker>::create(runtime);
    for (int sum : co_await makers.call<&Maker::generations>(50)) EXPECT_EQ(sum, 250);
    EXPECT_EQ(alive, 0);
    co_await makers.call<&Maker::at_once>();
    EXPECT_EQ(alive, 0);
  }),
            "");
}

TEST(Destruction, AnyPeMayDestroyAndSeveralAtTheSameTime) {
  for (int pe = 0; pe < 4; ++pe) {
    alive = 0;
    testing::InProcessJob job(3);
    EXPECT_EQ(job.run([pe](Runtime& runtime) -> Task<> {
      auto makers = Group<Maker>::create(runtime);
      auto given = Array<Counted>::create(runtime, {6});
      if (pe < 3) {
        EXPECT_TRUE((co_await makers[pe].call<&Maker::destroy_given>(given)));
      } else {
        const auto destroyed = co_await makers.call<&Maker::destroy_given>(given);
        EXPECT_TRUE(std::ranges::find(destroyed, true) != destroyed.end());
      }
      EXPECT_EQ(alive, 0);
      EXPECT_TRUE(says(thrown_by([&] { static_cast<void>(given.destroy()); }), "has been destroyed"));
    }),
              "");
  }
}

TEST(Destruction, AProxyThatOutlivesItsCollectionSaysSo) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto makers = Group<Maker>::create(runtime);
    auto array = Array<Counted>::create(runtime, {4});
    co_await array.destroy();
    EXPECT_TRUE(says(thrown_by([&] { array[0].send<&Counted::note>(); }), "Counted has been destroyed"));
    EXPECT_TRUE(
        says(thrown_by([&] { static_cast<void>(array[3].call<&Counted::touch>()); }), "has been destroyed"));
    EXPECT_TRUE(says(thrown_by([&] { array.send<&Counted::note>(); }), "has been destroyed"));
    EXPECT_TRUE(
        says(thrown_by([&] { static_cast<void>(array.call<&Counted::touch>()); }), "has been destroyed"));
    EXPECT_EQ(array.local(0), nullptr);
    EXPECT_THROW(array[9], base::Error);
    // A proxy that travels afterwards.
    for (int pe = 0; pe < 2; ++pe)
      EXPECT_TRUE(says(co_await error_of(makers[pe].call<&Maker::touch_given>(array)), "has been destroyed"));
  }),
            "");
}

TEST(Destruction, AnElementWhoseMethodWaitsIsFreedWhenItHasEnded) {
  for (int element = 0; element < 2; ++element) {
    alive = 0;
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([element](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {2});
      Future<int> gate(runtime);
      Future<> begun(runtime);
      // The future of another PE cannot be awaited: the gate is one that the element makes, if it is not on PE 0.
      if (element == 0) {
        auto waits = array[0].call<&Counted::wait>(gate, begun);
        co_await begun;
        co_await array.destroy();
        EXPECT_EQ(alive, 1);
        gate.set(41);
        EXPECT_EQ((co_await waits), 41);
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      } else {
        co_await array[1].call<&Counted::destroy_all>();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      }
    }),
              "");
    EXPECT_EQ(alive, 0);
  }
}

TEST(Destruction, AnElementThatStillWaitsAtTheEndIsFreedThen) {
  alive = 0;
  {
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {2});
      Future<int> gate(runtime);
      Future<> begun(runtime);
      array[0].send<&Counted::wait>(gate, begun);
      co_await begun;
      co_await array.destroy();
      EXPECT_EQ(alive, 1);
    }),
              "");
  }
  EXPECT_EQ(alive, 0);
}

// Sends a message as another PE would that has not heard of the end yet.
void send_late(Runtime& runtime, Collection& to, const ReplyTo& reply, std::uint64_t index, bool to_all,
               int pe) {
  auto& chares = runtime.model<Chares>();
  const EntryHeader header{to.id(), index, EntryMethod<Counted, &Counted::touch>::info().id, 0, reply};
  auto message = to_all ? chares.make_broadcast_message(header, 0) : chares.make_entry_message(header, 0);
  if (to_all) {
    runtime.broadcast(std::move(message));
  } else {
    runtime.send(pe, std::move(message));
  }
}

TEST(Destruction, ALateCallIsRefusedInWords) {
  for (int pe = 0; pe < 2; ++pe) {
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([pe](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {4});
      co_await array.destroy();
      Future<int> result(runtime);
      send_late(runtime, array.collection(), reply_to(*result.state()), 3, false, pe);
      const std::string why = co_await error_of(result);
      EXPECT_TRUE(says(why, "Counted[3].touch from PE 0 comes too late")) << why;
      EXPECT_TRUE(says(why, "has been destroyed")) << why;
    }),
              "");
  }
}

TEST(Destruction, ALateCallWithoutACallerEndsTheJob) {
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto array = Array<Counted>::create(runtime, {4});
    co_await array.destroy();
    send_late(runtime, array.collection(), {}, 3, false, 1);
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "a call of ") && says(failure, "has been destroyed")) << failure;
}

TEST(Destruction, ALateCallOfAllFailsOnce) {
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto array = Array<Counted>::create(runtime, {6});
    auto other = Array<Counted>::create(runtime, {6});
    co_await array.destroy();
    int times = 0;
    std::string why;
    auto& chares = runtime.model<Chares>();
    const ReplyTo reply = chares.expect_gather([&](Pup& p) {
      ++times;
      const auto error = read_gathered(p, [](std::uint64_t) {}, [](std::uint64_t, Pup&) {});
      why = message_of(error);
    });
    send_late(runtime, array.collection(), reply, 0, true, 0);
    co_await runtime.quiescence();
    EXPECT_EQ(times, 1);
    EXPECT_TRUE(says(why, "Counted.touch from PE 0") && says(why, "has been destroyed")) << why;
    // The next gather is not disturbed.
    EXPECT_EQ((co_await other.call<&Counted::touch>()), std::vector<int>(6, 1));
  }),
            "");
}

TEST(Destruction, FuturesOfUnfinishedReductionsFail) {
  for (int contributors = 1; contributors < 6; ++contributors) {
    testing::InProcessJob job(3);
    EXPECT_EQ(job.run([contributors](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {6});
      Future<int> sum(runtime);
      for (int i = 6 - contributors; i < 6; ++i) array[i].send<&Counted::give>(i, sum);
      co_await runtime.quiescence();
      co_await array.destroy();
      const std::string why = co_await error_of(sum);
      EXPECT_TRUE(says(why, "before the reduction was complete")) << why;
    }),
              "")
        << contributors;
  }
}

TEST(Destruction, AllreducesFailAndTheirMethodsEnd) {
  for (int contributors = 1; contributors < 6; ++contributors) {
    alive = 0;
    testing::InProcessJob job(3);
    EXPECT_EQ(job.run([contributors](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {6});
      std::vector<Future<int>> sums;
      for (int i = 6 - contributors; i < 6; ++i) sums.push_back(array[i].call<&Counted::take_part>(i));
      co_await runtime.quiescence();
      co_await array.destroy();
      for (auto& sum : sums) {
        const std::string why = co_await error_of(sum);
        EXPECT_TRUE(says(why, "before the reduction was complete")) << why;
      }
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }),
              "")
        << contributors;
  }
}

TEST(Destruction, AMethodThatGoesOnCannotContribute) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto array = Array<Counted>::create(runtime, {2});
    Future<int> gate(runtime);
    Future<> begun(runtime);
    auto goes_on = array[0].call<&Counted::contribute_after>(gate, begun);
    co_await begun;
    co_await array.destroy();
    gate.set(1);
    EXPECT_TRUE(says(co_await error_of(goes_on), "has been destroyed"));
  }),
            "");
}

// --- Exceptions that nothing awaits

TEST(Destruction, AMethodThatEndsAsClosedIsNoFailure) {
  for (const bool is_closed : {true, false}) {
    testing::InProcessJob job(2);
    const std::string failure = job.run([is_closed](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {2});
      Future<> begun(runtime);
      Future<> gate(runtime);
      array[0].send<&Counted::fail_after>(is_closed, gate, begun);
      co_await begun;
      co_await array.destroy();
      gate.set();
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    });
    EXPECT_EQ(failure.empty(), is_closed) << failure;
    EXPECT_TRUE(is_closed || says(failure, "a mistake")) << failure;
  }
}

TEST(Destruction, AMethodOfALivingChareThatEndsAsClosedEndsTheJob) {
  for (int num_pes : {1, 3}) {
    testing::InProcessJob job(num_pes);
    const std::string failure = job.run([](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {3});
      array[2].send<&Counted::fail>(true);
      co_await runtime.make_future<>();
    });
    EXPECT_TRUE(says(failure, "Counted[2].fail on PE") && says(failure, "what it waited for")) << failure;
  }
}

// The news that ends the method overtakes the end of the collection.
TEST(Destruction, TheEndOfTheCollectionMayBeUnderWay) {
  for (int pe = 0; pe < 3; ++pe) {
    testing::InProcessJob job(3);
    EXPECT_EQ(job.run([pe](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, Shape(3).with_map(Map::kRoundRobin));
      co_await array.created();
      array[pe].send<&Counted::fail>(true);
      co_await array.destroy();
      co_await runtime.quiescence();
    }),
              "")
        << pe;
  }
}

TEST(Destruction, AnAwaitedMethodThatEndsAsClosedTellsItsCaller) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto array = Array<Counted>::create(runtime, {2});
    Future<> begun(runtime);
    Future<> gate(runtime);
    auto waits = array[0].call<&Counted::fail_after>(true, gate, begun);
    co_await begun;
    co_await array.destroy();
    gate.set();
    EXPECT_TRUE(says(co_await error_of(waits), "what it waited for"));
  }),
            "");
}

// Elements whose destructors use the runtime.
struct Caller : Chare<Caller> {
  explicit Caller(ElementProxy<Counted> to_in) : to(to_in) {}
  ~Caller() override {
    if (!runtime().stopped()) to.send<&Counted::note>();
  }
  int ready() { return 1; }
  ElementProxy<Counted> to;
};

TEST(Destruction, DestructorsMayCall) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto counted = Singleton<Counted>::create(runtime, 0);
    auto callers = Array<Caller>::create(runtime, {10}, counted.element());
    co_await callers.call<&Caller::ready>();
    co_await callers.destroy();
    co_await runtime.quiescence();
    EXPECT_EQ((co_await counted.element().call<&Counted::touch>()), 11);
  }),
            "");
}

// A call whose arguments land beside its message, in a coroutine.
struct Lander : Chare<Lander> {
  Lander() { ++alive; }
  ~Lander() override { --alive; }
  Task<int> take(std::vector<int> values) {
    co_await yield_now(runtime());
    seen += static_cast<int>(values.size());
    co_return seen;
  }
  int seen = 0;
};

TEST(Destruction, ACallThatLandsMeanwhileEndsOnce) {
  for (int turns = 0; turns < 30; ++turns) {
    alive = 0;
    testing::InProcessJob job(2, turns % 2 == 0 ? "loopback" : "ucx");
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto landers = Array<Lander>::create(runtime, Shape(2).with_map(Map::kRoundRobin));
      co_await landers.created();
      auto result = landers[1].call<&Lander::take>(std::vector<int>(50'000));
      for (int turn = 0; turn < turns / 2; ++turn) co_await yield_now(runtime);
      auto ended = landers.destroy();
      try {
        EXPECT_EQ(co_await result, 50'000);
      } catch (const base::Error& error) {
        EXPECT_TRUE(says(error.what(), "has been destroyed")) << error.what();
      }
      co_await ended;
      co_await runtime.quiescence();
      EXPECT_EQ(alive, 0);
    }),
              "")
        << turns;
  }
}

// Destroys others when it is freed, also at the end of the job.
struct Parent : Chare<Parent> {
  Parent() : children(Array<Counted>::create(runtime(), {3})) {}
  ~Parent() override {
    if (!children.collection().is_destroyed()) static_cast<void>(children.destroy());
  }
  int ready() { return 1; }
  Array<Counted> children;
};

TEST(Destruction, DestructorsMayDestroyOthers) {
  for (const bool at_the_end : {false, true}) {
    alive = 0;
    {
      testing::InProcessJob job(2);
      EXPECT_EQ(job.run([at_the_end](Runtime& runtime) -> Task<> {
        auto parents = Array<Parent>::create(runtime, {4});
        co_await parents.call<&Parent::ready>();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 12);
        if (at_the_end) co_return;
        co_await parents.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      }),
                "");
    }
    EXPECT_EQ(alive, 0);
  }
}

// Calls queued behind the end in the PE's own queue, without a message.
struct Destroyer : Chare<Destroyer> {
  Task<std::string> destroy_then_call(CollectionProxy<Counted> given) {
    auto ended = given.destroy();
    auto late = given[0].call<&Counted::touch>();  // before this PE has heard of the end
    const std::string why = co_await error_of(late);
    co_await ended;
    co_return why;
  }
};

TEST(Destruction, ACallInTheQueueOfThePeIsAnsweredInEveryCase) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto destroyer = Singleton<Destroyer>::create(runtime, 0);
    auto given = Array<Counted>::create(runtime, {1});
    co_await given.call<&Counted::touch>();
    const std::string why = co_await destroyer.element().call<&Destroyer::destroy_then_call>(given);
    EXPECT_TRUE(says(why, "has been destroyed")) << why;
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
