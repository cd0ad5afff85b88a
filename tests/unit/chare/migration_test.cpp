// Moves of elements: what moves, what is refused, what an arrival meets.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/rover.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

struct Stone : Chare<Stone> {
  void go(int to_pe) { migrate(to_pe); }
  void touch() {}
};

TEST(Migration, MovesTheStateAndTheElementIsFoundFromEveryPe) {
  for (const char* machine : {"loopback", "ucx"}) {
    num_rovers = 0;
    testing::InProcessJob job(3, machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto rovers = Array<Rover>::create(runtime, {6}, 200'000);
      co_await rovers.created();
      EXPECT_EQ(num_rovers, 6);
      for (int to_pe : {1, 2, 0, 0, 2}) {
        co_await rovers[0].call<&Rover::go>(to_pe);
        EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), to_pe);
      }
      EXPECT_EQ(co_await rovers[0].call<&Rover::moves>(), 4);
      EXPECT_EQ(co_await rovers[0].call<&Rover::arrived>(), 4);
      EXPECT_EQ((co_await rovers.call<&Rover::log>())[0], "0,0");
      EXPECT_EQ(num_rovers, 6);
      co_await rovers.destroy();
      EXPECT_EQ(num_rovers, 0);
    }),
              "");
  }
}

TEST(Migration, RefusesWhatCannotMoveWithTheReason) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto rovers = Array<Rover>::create(runtime, {2}, 1);
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(2)), "there is no PE 2; the job has 2"));
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(-1)), "there is no PE -1"));
    auto stones = Array<Stone>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(stones[0].call<&Stone::go>(1)), "void pup(weft::Pup& p)"));

    Future<int> gate(runtime);
    Future<> begun(runtime);
    auto waiting = rovers[0].call<&Rover::wait>(gate, begun);
    co_await begun;
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(1)), "has 1 coroutine that waits"));
    gate.set(7);
    EXPECT_EQ(co_await waiting, 7);
    rovers.local(0)->set_pinned(true);
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(1)), "is pinned"));
    rovers.local(0)->set_pinned(false);
    rovers.local(0)->migrate(1);
    rovers.local(0)->set_pinned(true);  // it stays
    co_await yield_now(runtime);
    EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), 0);
    auto group = Group<Rover>::create(runtime, 1);
    EXPECT_TRUE(says(co_await error_of(group[0].call<&Rover::go>(1)), "belongs to a group"));
    rovers.local(0)->set_pinned(false);
    co_await rovers[0].call<&Rover::go>(1);
    EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), 1);
  }),
            "");
}

// A method that is called between the request and the move, and waits, delays the move.
TEST(Migration, WaitsForMethodsThatHaveBegunMeanwhile) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto rovers = Array<Rover>::create(runtime, {2}, 1);
    co_await rovers.created();
    Future<int> gate(runtime);
    Future<> begun(runtime);
    rovers[0].send<&Rover::go>(1);
    auto waiting = rovers[0].call<&Rover::wait>(gate, begun);
    co_await begun;
    EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), 0);
    gate.set(3);
    EXPECT_EQ(co_await waiting, 3);
    while (co_await rovers[0].call<&Rover::where_now>() != 1) co_await yield_now(runtime);
    EXPECT_EQ(co_await rovers[0].call<&Rover::moves>(), 1);
  }),
            "");
}

TEST(Migration, DoesNothingForAnElementOfADestroyedCollection) {
  num_rovers = 0;
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    for (int round = 0; round < 20; ++round) {
      auto rovers = Array<Rover>::create(runtime, {6}, 1);
      co_await rovers.created();
      for (int i = 0; i < 6; ++i) rovers[i].send<&Rover::go>((i + round) % 3);
      for (int turn = 0; turn < round; ++turn) co_await yield_now(runtime);
      co_await rovers.destroy();
    }
    co_await runtime.quiescence();
    EXPECT_EQ(num_rovers, 0);
  }),
            "");
}

// Its large vectors land before the new PE knows the collection, which comes through the tree.
struct Hasty : Chare<Hasty> {
  explicit Hasty(std::vector<int> values_in) : values(std::move(values_in)) {
    migrate(runtime().num_pes() - 1);
  }
  explicit Hasty(Moved) {}
  void pup(Pup& p) { p | values; }
  std::vector<int> sent() { return values; }
  std::vector<int> values;
};

TEST(Migration, MayOvertakeTheCreationOfTheCollection) {
  for (const char* machine : {"loopback", "ucx"}) {
    testing::InProcessJob job(30, machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      std::vector<int> values(100'000);
      std::iota(values.begin(), values.end(), 7);
      auto hasty = Array<Hasty>::create(runtime, Shape(3).on_pe(0), values);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await hasty[i].call<&Hasty::sent>(), values);
    }),
              "");
  }
}

struct Leaver : Chare<Leaver> {
  void pup(Pup&) {}
  void departed() override { throw std::runtime_error("no goodbye"); }
  void go(int to_pe) { migrate(to_pe); }
};

TEST(Migration, AnExceptionOfDepartedEndsTheJobAndNamesTheMove) {
  testing::InProcessJob job(2);
  const std::string error = job.run([](Runtime& runtime) -> Task<> {
    auto leavers = Array<Leaver>::create(runtime, Shape(1).on_pe(0));
    co_await leavers[0].call<&Leaver::go>(1);
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(says(error, "no goodbye"));
  EXPECT_TRUE(says(error, "Leaver[0] on PE 0 to PE 1"));
}

// An element moves as soon as it can, to a PE that may not have made the collection yet.
struct Eager : Chare<Eager> {
  Eager() : values(50'000, 3) { migrate((pe() + 1) % num_pes()); }
  explicit Eager(Moved) {}
  void pup(Pup& p) { p | values; }
  bool is_whole() {
    return values.size() == 50'000 && std::ranges::all_of(values, [](int one) { return one == 3; });
  }
  std::vector<int> values;
};

TEST(Migration, AnElementMayArriveBeforeItsCollection) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int round = 0; round < 10; ++round) {
      testing::InProcessJob job(5, machine);
      EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
        auto eager = Array<Eager>::create(runtime, {10});
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(co_await eager[i].call<&Eager::is_whole>());
      }),
                "");
    }
  }
}

}  // namespace
}  // namespace weft::chare
