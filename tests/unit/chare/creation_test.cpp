// Creations that are awaited, and constructors that throw.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/tree/spanning_tree.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;
int made = 0;

struct Picky : Chare<Picky> {
  // Throws in the elements from `first` to `last`.
  Picky(int first, int last) {
    if (index()[0] >= first && index()[0] <= last)
      throw std::runtime_error("not me: " + std::to_string(index()[0]));
    ++made;
  }
  ~Picky() override { --made; }
  int touch() { return 1; }
};

TEST(Creation, IsReadyWhenAllConstructorsHaveReturned) {
  for (int num_pes : {1, 2, 3, 11}) {
    made = 0;
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto array = Array<Picky>::create(runtime, {10}, 20, 20);
      auto early = array.call<&Picky::touch>();
      co_await array.created();
      EXPECT_EQ(made, 10);
      EXPECT_EQ((co_await early), std::vector<int>(10, 1));
      co_await array.created();  // again
      auto single = Singleton<Picky>::create(runtime, 0, 20, 20);
      co_await single.created();
      EXPECT_EQ(made, 11);
      co_await single.destroy();
      co_await array.destroy();
    }),
              "");
    EXPECT_EQ(made, 0);
  }
}

struct PickyAndLarge : Chare<PickyAndLarge> {
  explicit PickyAndLarge(const std::vector<int>&) { throw std::runtime_error("not me"); }
  int touch() { return 1; }
};

// The arguments come through the tree, and the end directly.
TEST(Creation, CallsAreRefusedWhereTheEndComesBeforeTheCreation) {
  for (const char* machine : {"loopback", "ucx"}) {
    testing::InProcessJob job(30, machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto array = Array<PickyAndLarge>::create(runtime, {30}, std::vector<int>(100'000));
      auto early = array[29].call<&PickyAndLarge::touch>();
      EXPECT_TRUE(says(co_await error_of(array.created()), "not me"));
      EXPECT_TRUE(says(co_await error_of(early), "could not be created"));
    }),
              "");
  }
}

TEST(Creation, AnExceptionOfAConstructorIsThatOfTheAwait) {
  for (int num_pes : {1, 2, 3, 11}) {
    for (const auto& [first, last] : {std::pair{0, 0}, std::pair{9, 9}, std::pair{3, 7}, std::pair{0, 9}}) {
      made = 0;
      testing::InProcessJob job(num_pes);
      EXPECT_EQ(job.run([first, last](Runtime& runtime) -> Task<> {
        auto array = Array<Picky>::create(runtime, {10}, first, last);
        auto early = array[9].call<&Picky::touch>();
        auto all = array.call<&Picky::touch>();
        array[first].send<&Picky::touch>();
        const std::string why = co_await error_of(array.created());
        EXPECT_TRUE(says(why, "not me: ")) << why;
        EXPECT_TRUE(says(why, "Picky[")) << why;
        // A call that comes before the end to an element that was made has run.
        const std::string one = co_await error_of(early);
        if (last == 9) {
          EXPECT_TRUE(says(one, "could not be created: the constructor of")) << one;
        }
        const std::string every = co_await error_of(all);
        EXPECT_TRUE(says(every, "could not be created: the constructor of")) << every;
        EXPECT_THROW(static_cast<void>(array.call<&Picky::touch>()), base::Error);
        co_await runtime.quiescence();
        EXPECT_EQ(made, 0);
        // The next one is not disturbed.
        auto good = Array<Picky>::create(runtime, {10}, 20, 20);
        co_await good.created();
        EXPECT_EQ((co_await good.call<&Picky::touch>()), std::vector<int>(10, 1));
        co_await good.destroy();
      }),
                "")
          << num_pes << " PEs, " << first << " to " << last;
      EXPECT_EQ(made, 0);
    }
  }
}

TEST(Creation, WithoutAnAwaitTheExceptionEndsTheJob) {
  for (int num_pes : {1, 3}) {
    testing::InProcessJob job(num_pes);
    const std::string failure = job.run([](Runtime& runtime) -> Task<> {
      Array<Picky>::create(runtime, {10}, 9, 9);
      co_await runtime.make_future<>();
    });
    EXPECT_TRUE(says(failure, "Picky[9] on PE " + std::to_string(num_pes - 1))) << failure;
    EXPECT_TRUE(says(failure, "not me")) << failure;
  }
}

struct Elsewhere : Chare<Elsewhere> {
  std::string await_it(CollectionProxy<Picky> picky) {
    try {
      static_cast<void>(picky.created());
    } catch (const base::Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST(Creation, OnlyTheCreatorAwaitsIt) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto picky = Array<Picky>::create(runtime, {10}, 20, 20);
    auto elsewhere = Singleton<Elsewhere>::create(runtime, 1);
    const std::string why = co_await elsewhere.element().call<&Elsewhere::await_it>(picky);
    EXPECT_TRUE(says(why, "only PE 0")) << why;
  }),
            "");
}

TEST(Creation, DoesNotWaitForAPeThatComputes) {
  constexpr int kPes = 11;
  testing::InProcessJob job(kPes);
  // PE 1 takes no turns. By the tree, PEs 9 and 10 would get the creation through it.
  ASSERT_EQ(runtime::SpanningTree(0, 10, kPes).parent(), 1);
  int touched = 0;
  auto array = Array<Picky>::create(job.runtime(0), Shape(kPes).with_map(Map::kRoundRobin), 20, 20);
  for (int i : {9, 10}) {
    array[i].call<&Picky::touch>().then([&touched](const Future<int>& result) { touched += result.get(); });
  }
  for (int turn = 0; turn < 1000 && touched < 2; ++turn) {
    for (int pe = 0; pe < kPes; ++pe) {
      if (pe != 1) job.runtime(pe).step();
    }
  }
  EXPECT_EQ(touched, 2);
}

}  // namespace
}  // namespace weft::chare
