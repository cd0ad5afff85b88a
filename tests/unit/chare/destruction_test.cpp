// destroy(): elements, waiting methods and reductions end on every PE.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/counted.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

TEST(Destruction, FreesTheElementsOfEveryKindOnEveryPe) {
  for (int num_pes : {1, 2, 3, 11}) {
    num_counted = 0;
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
      EXPECT_EQ(num_counted, 14 + num_pes);
      co_await table.destroy();
      EXPECT_EQ(num_counted, 11 + num_pes);
      co_await array.destroy();
      EXPECT_EQ(num_counted, 1 + num_pes);
      co_await group.destroy();
      EXPECT_EQ(num_counted, 1);
      co_await singleton.destroy();
      EXPECT_EQ(num_counted, 0);
      EXPECT_TRUE(array.collection().is_destroyed());
      EXPECT_EQ(array.collection().element_name(9).substr(array.collection().name().size()), "[1, 4]");
    }),
              "");
    EXPECT_EQ(num_counted, 0);
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
  num_counted = 0;
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto makers = Group<Maker>::create(runtime);
    for (int sum : co_await makers.call<&Maker::generations>(50)) EXPECT_EQ(sum, 250);
    EXPECT_EQ(num_counted, 0);
    co_await makers.call<&Maker::at_once>();
    EXPECT_EQ(num_counted, 0);
  }),
            "");
}

TEST(Destruction, AnyPeMayDestroyAndSeveralAtTheSameTime) {
  for (int pe = 0; pe < 4; ++pe) {
    num_counted = 0;
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
      EXPECT_EQ(num_counted, 0);
      EXPECT_TRUE(says(thrown_as_closed([&] { static_cast<void>(given.destroy()); }), "has been destroyed"));
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
    EXPECT_TRUE(
        says(thrown_as_closed([&] { array[0].send<&Counted::note>(); }), "Counted has been destroyed"));
    EXPECT_TRUE(says(thrown_as_closed([&] { static_cast<void>(array[3].call<&Counted::touch>()); }),
                     "has been destroyed"));
    EXPECT_TRUE(says(thrown_as_closed([&] { array.send<&Counted::note>(); }), "has been destroyed"));
    EXPECT_TRUE(says(thrown_as_closed([&] { static_cast<void>(array.call<&Counted::touch>()); }),
                     "has been destroyed"));
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
    num_counted = 0;
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
        EXPECT_EQ(num_counted, 1);
        gate.set(41);
        EXPECT_EQ((co_await waits), 41);
        co_await runtime.quiescence();
        EXPECT_EQ(num_counted, 0);
      } else {
        co_await array[1].call<&Counted::destroy_all>();
        co_await runtime.quiescence();
        EXPECT_EQ(num_counted, 0);
      }
    }),
              "");
    EXPECT_EQ(num_counted, 0);
  }
}

TEST(Destruction, AnElementThatStillWaitsAtTheEndIsFreedThen) {
  num_counted = 0;
  {
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {2});
      Future<int> gate(runtime);
      Future<> begun(runtime);
      array[0].send<&Counted::wait>(gate, begun);
      co_await begun;
      co_await array.destroy();
      EXPECT_EQ(num_counted, 1);
    }),
              "");
  }
  EXPECT_EQ(num_counted, 0);
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
    num_counted = 0;
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
      EXPECT_EQ(num_counted, 0);
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
      EXPECT_EQ(num_counted, 0);
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
    num_counted = 0;
    {
      testing::InProcessJob job(2);
      EXPECT_EQ(job.run([at_the_end](Runtime& runtime) -> Task<> {
        auto parents = Array<Parent>::create(runtime, {4});
        co_await parents.call<&Parent::ready>();
        co_await runtime.quiescence();
        EXPECT_EQ(num_counted, 12);
        if (at_the_end) co_return;
        co_await parents.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(num_counted, 0);
      }),
                "");
    }
    EXPECT_EQ(num_counted, 0);
  }
}

// In bytes of the C library's heap.
std::size_t heap_in_use() { return mallinfo2().uordblks; }

TEST(Destruction, LeavesLittleOfACollection) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer has a heap of its own, which does not tell how much is in use";
#endif
  constexpr std::size_t kNumPes = 2;
  constexpr std::size_t kMostBytes = 256;  // of one collection on a PE
  num_counted = 0;
  testing::InProcessJob job(kNumPes);
  std::size_t grown = 0;
  constexpr std::size_t kCount = 2000;
  EXPECT_EQ(job.run([&grown](Runtime& runtime) -> Task<> {
    for (std::size_t i = 0; i < 2 * kCount; ++i) {
      if (i == kCount) grown = heap_in_use();
      auto array = Array<Counted>::create(runtime, {4});
      co_await array.call<&Counted::touch>();
      co_await array.destroy();
      auto group = Group<Counted>::create(runtime);
      co_await group.call<&Counted::touch>();
      co_await group.destroy();
      auto singleton = Singleton<Counted>::create(runtime, 1);
      co_await singleton.element().call<&Counted::touch>();
      co_await singleton.destroy();
    }
    grown = heap_in_use() - grown;
  }),
            "");
  EXPECT_LT(grown, 3 * kCount * kNumPes * kMostBytes);
}

}  // namespace
}  // namespace weft::chare
