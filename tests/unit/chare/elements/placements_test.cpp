#include "models/chare/elements/placements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

// Has all calls land in one buffer, or in parts of it.
struct Sink : Chare<Sink> {
  void one(int number, Payload<int> values) {
    torn += std::ranges::any_of(values.span(), [number](int value) { return value != number; }) ? 1 : 0;
    order.push_back(number);
  }
  void post_one(int, ReceiveBuffer<int>& values) { values.into(room); }

  void part(int first, int number, Payload<int> values) {
    static_cast<void>(first);
    one(number, std::move(values));
  }
  void post_part(int first, int, ReceiveBuffer<int>& values) {
    values.into(std::span<int>(room).subspan(static_cast<std::size_t>(first)));
  }

  // Waits after it has read the buffer: the next call may land then.
  Task<int> waits(int number, Payload<int> values) {
    one(number, std::move(values));
    gate = Future<>(runtime());
    co_await gate;
    co_return number;
  }
  void post_waits(int, ReceiveBuffer<int>& values) { values.into(room); }
  void open() { gate.set(); }

  void refuses(int number, Payload<int> values) {
    one(number, std::move(values));
    throw Error(base::StatusCode::kInvalidArgument, "refused");
  }
  void post_refuses(int, ReceiveBuffer<int>& values) { values.into(room); }

  void twice(Payload<int>, Payload<int>) { ++torn; }
  void post_twice(ReceiveBuffer<int>& a, ReceiveBuffer<int>& b) {
    a.into(room);
    b.into(std::span<int>(room).subspan(1));
  }

  std::vector<int> get() { return order; }
  int num_torn() { return torn; }

  using PostEntryMethods =
      weft::PostEntryMethods<Post<&Sink::one, &Sink::post_one>, Post<&Sink::part, &Sink::post_part>,
                             Post<&Sink::waits, &Sink::post_waits>, Post<&Sink::refuses, &Sink::post_refuses>,
                             Post<&Sink::twice, &Sink::post_twice>>;

  std::vector<int> room = std::vector<int>(100'000);
  std::vector<int> order;
  Future<> gate;
  int torn = 0;
};

struct PlacementsTest : ::testing::TestWithParam<int> {
  void run(const std::function<Task<>(Runtime&)>& main) {
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run(main), "");
  }
};

// What each of ten calls sends: its number, again and again.
std::vector<std::vector<int>> numbered(std::size_t size) {
  std::vector<std::vector<int>> contents;
  for (int i = 0; i < 10; ++i) contents.emplace_back(size, i);
  return contents;
}

TEST_P(PlacementsTest, CallsThatLandInOneBufferWaitForEachOther) {
  run([](Runtime& runtime) -> Task<> {
    auto sinks = Group<Sink>::create(runtime);
    const int last = runtime.num_pes() - 1;
    std::vector<int> all(10);
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
      const auto contents = numbered(size);
      std::vector<Future<>> calls;
      for (int i = 0; i < 10; ++i) {
        calls.push_back(sinks[last].call<&Sink::one>(i, nocopy(contents[static_cast<std::size_t>(i)])));
      }
      for (Future<>& call : calls) co_await call;
      int torn = co_await sinks[last].call<&Sink::num_torn>();
      EXPECT_EQ(torn, 0) << size;
    }
    std::vector<int> order = co_await sinks[last].call<&Sink::get>();
    EXPECT_EQ(order.size(), 30U);
    for (std::size_t round = 0; round < 3; ++round) {
      std::vector<int> part(order.begin() + static_cast<std::ptrdiff_t>(round) * 10,
                            order.begin() + static_cast<std::ptrdiff_t>(round) * 10 + 10);
      std::ranges::sort(part);
      EXPECT_EQ(part, all);
    }
  });
}

TEST_P(PlacementsTest, AlsoInPartsOfIt) {
  run([](Runtime& runtime) -> Task<> {
    auto sinks = Group<Sink>::create(runtime);
    const int last = runtime.num_pes() - 1;
    const auto contents = numbered(30'000);
    std::vector<Future<>> calls;
    for (int i = 0; i < 10; ++i) {  // each overlaps with those before and after it
      calls.push_back(sinks[last].call<&Sink::part>((i * 20'000) % 70'000, i,
                                                    nocopy(contents[static_cast<std::size_t>(i)])));
    }
    for (Future<>& call : calls) co_await call;
    int torn = co_await sinks[last].call<&Sink::num_torn>();
    EXPECT_EQ(torn, 0);
  });
}

TEST_P(PlacementsTest, ACoroutineGivesTheBufferUpWhenItSuspends) {
  run([](Runtime& runtime) -> Task<> {
    auto sinks = Group<Sink>::create(runtime);
    const int last = runtime.num_pes() - 1;
    const auto contents = numbered(50'000);
    Future<int> first = sinks[last].call<&Sink::waits>(1, nocopy(contents[1]));
    co_await sinks[last].call<&Sink::one>(2, nocopy(contents[2]));  // while the first is suspended
    co_await sinks[last].call<&Sink::open>();
    int number = co_await first;
    EXPECT_EQ(number, 1);
    int torn = co_await sinks[last].call<&Sink::num_torn>();
    EXPECT_EQ(torn, 0);
  });
}

TEST_P(PlacementsTest, AMethodThatThrowsGivesTheBufferUp) {
  run([](Runtime& runtime) -> Task<> {
    auto sinks = Group<Sink>::create(runtime);
    const int last = runtime.num_pes() - 1;
    const auto contents = numbered(50'000);
    std::vector<Future<>> calls;
    for (int i = 0; i < 10; ++i) {
      calls.push_back(sinks[last].call<&Sink::refuses>(i, nocopy(contents[static_cast<std::size_t>(i)])));
    }
    for (Future<>& call : calls) {
      std::string what;
      try {
        co_await call;
      } catch (const RemoteError& error) {
        what = error.remote_message();
      }
      EXPECT_EQ(what, "refused");
    }
    int torn = co_await sinks[last].call<&Sink::num_torn>();
    EXPECT_EQ(torn, 0);
  });
}

TEST_P(PlacementsTest, TwoBuffersOfOneCallMustNotOverlap) {
  run([](Runtime& runtime) -> Task<> {
    auto sinks = Group<Sink>::create(runtime);
    const int last = runtime.num_pes() - 1;
    const auto contents = numbered(50'000);
    std::string what;
    try {
      co_await sinks[last].call<&Sink::twice>(nocopy(contents[0]), nocopy(contents[1]));
    } catch (const RemoteError& error) {
      what = error.remote_message();
    }
    EXPECT_NE(what.find("give each its own"), std::string::npos) << what;
    int torn = co_await sinks[last].call<&Sink::num_torn>();
    EXPECT_EQ(torn, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(NumPes, PlacementsTest, ::testing::Values(1, 2, 3));

TEST(Placements, KnowWhichMemoryIsFree) {
  testing::InProcessJob job(1);
  Placements placements(job.runtime(0));
  EXPECT_TRUE(placements.occupy({{100, 200}, {300, 400}}));
  for (const Placements::Range& taken :
       {Placements::Range{100, 200}, {150, 160}, {50, 101}, {199, 300}, {0, 1000}, {399, 400}}) {
    EXPECT_FALSE(placements.occupy({taken})) << taken.begin;
  }
  EXPECT_FALSE(placements.occupy({{500, 600}, {150, 250}}));  // all or nothing
  EXPECT_TRUE(placements.occupy({{500, 600}, {200, 300}}));
  placements.release({{100, 200}, {300, 400}});
  EXPECT_TRUE(placements.occupy({{0, 200}}));
  EXPECT_TRUE(placements.occupy({{300, 500}}));
  EXPECT_FALSE(placements.occupy({{299, 300}}));
}

TEST(Placements, OverlapWithinACall) {
  EXPECT_FALSE(Placements::overlap_one_another({{0, 10}, {10, 20}, {30, 40}}));
  EXPECT_TRUE(Placements::overlap_one_another({{0, 10}, {30, 40}, {9, 20}}));
}

}  // namespace
}  // namespace weft::chare
