// What pup() packs: the state that travels with an element.
#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/chare/elements/collection.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::says;

// Vectors of all sizes and of several types; a list, which pup() visits as a vector of its own; a constant.
struct Hauler : Chare<Hauler> {
  struct Point {
    float x, y, z;
  };
  explicit Hauler(int scale)
      : doubles(static_cast<std::size_t>(20'000 * scale)),
        points(static_cast<std::size_t>(5'000 * scale)),
        many(150, std::vector<std::int32_t>(static_cast<std::size_t>(9'000 * scale))),
        fixed(static_cast<std::size_t>(30'000 * scale)) {
    for (int i = 0; i < 12'000 * scale; ++i) list.push_back(i);
    for (std::size_t i = 0; i < doubles.size(); ++i) doubles[i] = static_cast<double>(i);
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = {static_cast<float>(i), 1, 2};
    for (std::size_t i = 0; i < many.size(); ++i) std::ranges::fill(many[i], static_cast<std::int32_t>(i));
    std::ranges::fill(fixed, 7);
  }
  explicit Hauler(Moved) {}
  void pup(Pup& p) {
    std::vector<std::int64_t> visited(list.begin(), list.end());
    p | visited;
    if (p.is_unpacking()) list.assign(visited.begin(), visited.end());
    p | doubles | sum | points | many | empty;
    if (p.is_unpacking()) {
      p | fixed;
    } else {
      p | std::as_const(fixed);  // still whole behind it
      EXPECT_TRUE(std::ranges::all_of(fixed, [](std::uint16_t one) { return one == 7; }));
    }
    if (p.is_unpacking()) sum = std::accumulate(doubles.begin(), doubles.end(), 0.0);  // it is here by now
  }
  void go(int to_pe) { migrate(to_pe); }
  std::string check(int scale) {
    const NewChare place(collection(), linear_index());
    const Hauler expected(scale);
    if (doubles != expected.doubles || many != expected.many || fixed != expected.fixed) return "damaged";
    if (list != expected.list || !empty.empty()) return "damaged list";
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].x != static_cast<float>(i) || points[i].z != 2) return "damaged points";
    }
    const auto n = static_cast<double>(doubles.size());
    return num_moves() == 0 || sum == n * (n - 1) / 2 ? "" : "wrong sum";
  }

  std::vector<double> doubles;
  std::vector<Point> points;
  std::vector<std::vector<std::int32_t>> many;
  std::list<std::int64_t> list;
  std::vector<std::uint16_t> fixed;
  std::vector<double> empty;
  double sum = 0;
};

// Packs a constant and a temporary, whose storage it cannot give away, and a member.
struct Frugal : Chare<Frugal> {
  explicit Frugal(int size) : kept(static_cast<std::size_t>(size), 1.5), given(kept.size(), 2.5) {}
  explicit Frugal(Moved) {}
  void pup(Pup& p) {
    if (p.is_unpacking()) {
      std::vector<double> doubled;
      p | kept | doubled | given;
      sum = std::accumulate(doubled.begin(), doubled.end(), 0.0);
    } else {
      p | std::as_const(kept) | twice(kept) | given;
    }
  }
  static std::vector<double> twice(std::vector<double> values) {
    for (double& value : values) value *= 2;
    return values;
  }
  void go(int to_pe) { migrate(to_pe); }
  double all() {
    return sum + std::accumulate(kept.begin(), kept.end(), std::accumulate(given.begin(), given.end(), 0.0));
  }
  std::vector<double> kept;
  std::vector<double> given;
  double sum = 0;
};

TEST(Migration, APupFunctionMayPackConstantsAndTemporaries) {
  for (const int size : {10, 100'000}) {
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([size](Runtime& runtime) -> Task<> {
      auto frugal = Array<Frugal>::create(runtime, Shape(1).on_pe(0), size);
      for (const int to_pe : {1, 0}) {
        co_await frugal[0].call<&Frugal::go>(to_pe);
        EXPECT_EQ(co_await frugal[0].call<&Frugal::all>(), 7.0 * size);
      }
    }),
              "");
  }
}

TEST(Migration, LargeVectorsTravelOutOfBand) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int scale : {0, 1, 3}) {
      SCOPED_TRACE(scale);
      testing::InProcessJob job(3, machine);
      EXPECT_EQ(job.run([scale](Runtime& runtime) -> Task<> {
        auto haulers = Array<Hauler>::create(runtime, {3}, scale);
        co_await haulers.created();
        for (int round = 0; round < 4; ++round) {
          for (int i = 0; i < 3; ++i) haulers[i].send<&Hauler::go>((i + round) % 3);
          for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await haulers[i].call<&Hauler::check>(scale), "");
        }
      }),
                "");
    }
  }
}

struct Unfit : Chare<Unfit> {
  void pup(Pup& p) {
    p | value;
    if (p.is_sizing()) p | value;
  }
  void go(int to_pe) { migrate(to_pe); }
  int value = 0;
};
TEST(Migration, NamesAPupFunctionThatVisitsDifferentMembers) {
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto unfit = Array<Unfit>::create(runtime, {2});
    unfit[0].send<&Unfit::go>(1);
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(says(failure, "the pup function of")) << failure;
  EXPECT_TRUE(says(failure, "visit the same members")) << failure;
}

}  // namespace
}  // namespace weft::chare
