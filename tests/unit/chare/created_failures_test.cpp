// created(): several that fail, collections that end while it waits, and elements that are counted meanwhile.
#include <gtest/gtest.h>

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/chare/created.h"
#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

int num_alive = 0;  // on all PEs of the test's job

struct Gate : Chare<Gate> {
  Future<> open() { return opened = Future<>(runtime()); }
  Task<> wait() { co_await opened; }
  Future<> opened;
};

class CreatedFailures : public ::testing::TestWithParam<int> {};

// Each fails some turns after the one before it.
struct Late : Chare<Late> {
  explicit Late(int turns_in) : turns(turns_in) { ++num_alive; }
  ~Late() override { --num_alive; }
  Task<> created() {
    const int wait = turns * static_cast<int>(linear_index());
    for (int i = 0; i < wait; ++i) co_await yield_now(runtime());
    throw std::runtime_error("no settings");
  }
  int turns;
};

TEST_P(CreatedFailures, SeveralFailOneAfterTheOther) {
  for (const int turns : {0, 1, 5, 50}) {
    num_alive = 0;
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto all = Array<Late>::create(runtime, {6}, turns);
      EXPECT_TRUE(says(co_await error_of(all.created()), "no settings"));
      while (num_alive != 0) co_await yield_now(runtime);
      co_await runtime.quiescence();
    }),
              "")
        << turns;
  }
}

// The others wait for element 0, which fails.
struct Dependent : Chare<Dependent> {
  Dependent() { ++num_alive; }
  ~Dependent() override { --num_alive; }
  Task<> created() {
    for (int i = 0; i < 5; ++i) co_await yield_now(runtime());
    if (linear_index() == 0) throw std::runtime_error("no first");
    co_await proxy()[0].call<&Dependent::number>();
  }
  int number() { return 1; }
};

TEST_P(CreatedFailures, OthersWaitForTheOneThatFails) {
  num_alive = 0;
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto all = Array<Dependent>::create(runtime, {6});
    Future<int> early = all[0].call<&Dependent::number>();
    EXPECT_TRUE(says(co_await error_of(all.created()), "no first"));
    const std::string why = co_await error_of(early);
    EXPECT_TRUE(says(why, "Dependent[0].number from PE 0 has no result: the collection"));
    EXPECT_TRUE(says(why, "could not be created: created() of"));
    EXPECT_TRUE(says(why, "Await the creation"));
    EXPECT_EQ(why.find("destroy"), std::string::npos) << why;
    while (num_alive != 0) co_await yield_now(runtime);
    co_await runtime.quiescence();
  }),
            "");
}

// --- Collections that end

struct Slow : Chare<Slow> {
  explicit Slow(ElementProxy<Gate> gate_in, bool fails_in = false) : gate(gate_in), fails(fails_in) {}
  Task<> created() {
    co_await gate.call<&Gate::wait>();
    if (fails) throw std::runtime_error("too late to fail");
  }
  int one() { return 1; }
  Task<int> sum() { co_return co_await allreduce(1, Reducer::kSum); }
  ElementProxy<Gate> gate;
  bool fails;
};

TEST_P(CreatedFailures, ACollectionThatIsDestroyedWasNotCreated) {
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto gate = Singleton<Gate>::create(runtime, 0);
    Future<> open = co_await gate.element().call<&Gate::open>();
    auto all = Array<Slow>::create(runtime, {4}, gate.element());
    std::vector<Future<>> made{all.created(), all.created()};
    co_await runtime.quiescence();
    EXPECT_FALSE(made[0].is_ready() || made[1].is_ready());
    co_await all.destroy();
    for (Future<>& one : made) {
      try {
        co_await one;
        ADD_FAILURE() << "the creation has succeeded";
      } catch (const base::Error& error) {
        EXPECT_EQ(error.code(), base::StatusCode::kClosed);
        EXPECT_TRUE(says(error.what(), "has been destroyed"));
      }
    }
    open.set();
    co_await runtime.quiescence();
  }),
            "");
}

TEST_P(CreatedFailures, AfterDestroyAnExceptionEndsTheJobAsThatOfAMethod) {
  testing::InProcessJob job(GetParam());
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto gate = Singleton<Gate>::create(runtime, 0);
    Future<> open = co_await gate.element().call<&Gate::open>();
    auto all = Array<Slow>::create(runtime, {2}, gate.element(), true);
    co_await runtime.quiescence();
    co_await all.destroy();
    open.set();
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "too late to fail"));
}

// Element 0 never sends, so the others wait until the collection ends. Their neighbour's end may arrive before it.
struct Listener : Chare<Listener> {
  Task<> created() {
    const int self = static_cast<int>(linear_index());
    if (self == 0) {
      right.emplace(*this, proxy()[1]);
      co_return;
    }
    Channel left(*this, proxy()[self - 1]);
    right.emplace(*this, proxy()[(self + 1) % kSize]);
    std::vector<int> value(1);
    co_await left.recv(std::span(value));
  }
  static constexpr int kSize = 5;
  std::optional<Channel> right;
};

TEST_P(CreatedFailures, WhatEndsWithItsCollectionIsNoFailure) {
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    for (int round = 0; round < 20; ++round) {
      auto all = Array<Listener>::create(runtime, {Listener::kSize});
      if (round % 2 == 0) co_await runtime.quiescence();
      co_await all.destroy();
      co_await runtime.quiescence();
    }
  }),
            "");
}

struct Closed : Chare<Closed> {
  Task<> created() {
    co_await yield_now(runtime());
    throw base::Error(base::StatusCode::kClosed, "the peer has gone");
  }
};

TEST_P(CreatedFailures, ClosedIsAnErrorWhileTheCollectionLives) {
  {
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto all = Array<Closed>::create(runtime, {4});
      const std::string why = co_await error_of(all.created());
      EXPECT_TRUE(says(why, "the peer has gone"));
      EXPECT_TRUE(says(why, "in created() of"));
      co_await runtime.quiescence();
    }),
              "");
  }
  testing::InProcessJob job(GetParam());
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    Array<Closed>::create(runtime, {1});
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "the peer has gone"));
  EXPECT_TRUE(says(failure, "created() of"));
}

INSTANTIATE_TEST_SUITE_P(Pes, CreatedFailures, ::testing::Values(1, 2, 3));

// --- Elements of sparse arrays that are counted meanwhile

struct Inserter : Chare<Inserter> {
  void begin(Array<Slow> all, int index, ElementProxy<Gate> gate, bool fails) {
    done = all.insert(index, gate, fails);
  }
  Task<> wait() { co_await done; }
  Future<> done;
};

// done_inserting() waits on PE 0, and PE 1 has settled, when PE 1 begins an insertion. Its element is counted.
void count_meanwhile(bool fails) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([fails](Runtime& runtime) -> Task<> {
    auto gates = Array<Gate>::create(runtime, Shape{2}.on_pe(0));
    std::vector<Future<>> open;
    for (int i = 0; i < 2; ++i) open.push_back(co_await gates[i].call<&Gate::open>());
    auto all = Array<Slow>::create_sparse(runtime, Shape{10});
    auto inserter = Singleton<Inserter>::create(runtime, 1).element();
    co_await all.created();
    Future<> first = all.insert(0, gates[0]);
    Future<> counted = all.done_inserting();
    co_await runtime.quiescence();
    co_await inserter.call<&Inserter::begin>(all, 9, gates[1], fails);
    co_await runtime.quiescence();
    EXPECT_FALSE(counted.is_ready());
    open[0].set();
    co_await first;
    co_await counted;
    EXPECT_EQ(all.num_elements(), 2U);
    // While it waits, and when it has ended, the call says why it has no results.
    EXPECT_TRUE(says(co_await error_of(all.call<&Slow::one>()), "Await done_inserting() before the call"));
    Future<int> sum = all[0].call<&Slow::sum>();
    open[1].set();
    const std::string why = co_await error_of(inserter.call<&Inserter::wait>());
    EXPECT_EQ(why.find("too late to fail") != std::string::npos, fails) << why;
    EXPECT_TRUE(says(co_await error_of(all.call<&Slow::one>()), "Await done_inserting() before the call"));
    if (!fails) {  // it belongs to the set, so reductions want its contribution
      EXPECT_EQ(co_await all[9].call<&Slow::sum>(), 2);
      EXPECT_EQ(co_await sum, 2);
    }
    co_await all.done_inserting();
    if (fails) {
      EXPECT_TRUE(says(co_await error_of(sum), "has counted its elements again"));
    }
    const std::vector<int> expected(fails ? 1 : 2, 1);
    EXPECT_EQ(co_await all.call<&Slow::one>(), expected);
    EXPECT_EQ((co_await all.call<&Slow::sum>()).at(0), static_cast<int>(expected.size()));
  }),
            "");
}

TEST(CreatedCount, AnElementWhoseCreatedWaits) { count_meanwhile(false); }
TEST(CreatedCount, AnElementWhoseCreatedFails) { count_meanwhile(true); }

}  // namespace
}  // namespace weft::chare
