// Puts and gets that need no coroutine: of mapped memory, and through the machine once the key to the segment is here.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using test_support::says;
using testing::pgas_error;
using testing::PgasJob;
using testing::PgasWay;

constexpr std::size_t kElements = 1000;
using Number = std::uint32_t;

struct DirectTest : ::testing::TestWithParam<PgasWay> {
  PgasJob job{2, GetParam()};
  Segment mine = job.pgas(0).make_segment<Number>(kElements);
  Segment theirs = job.pgas(1).make_segment<Number>(kElements);

  void fill(const Segment& segment, Number first) {
    const std::span<Number> values = segment.elements<Number>();
    std::iota(values.begin(), values.end(), first);
  }
  // A copy whose caller has the key.
  void warm_up() {
    job.run_on(0, [&](Pgas& pgas) -> Task<> { co_await pgas.put(Number{0}, theirs.pointer<Number>()); });
  }
  bool is_mapped() const { return GetParam().maps; }
};

INSTANTIATE_TEST_SUITE_P(Ways, DirectTest,
                         ::testing::Values(PgasWay{"loopback", true}, PgasWay{"loopback", false},
                                           PgasWay{"ucx", true}, PgasWay{"ucx", false}),
                         [](const auto& info) {
                           return std::string(info.param.machine) + (info.param.maps ? "" : "_unmapped");
                         });

TEST_P(DirectTest, CopiesBetweenSegmentsInBothDirections) {
  for (Number round = 0; round < 3; ++round) {
    fill(mine, 100 * round);
    fill(theirs, 5000);
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      co_await pgas.copy(mine.pointer<Number>(10), theirs.pointer<Number>(20), 30);
    });
    std::vector<Number> expected(kElements);
    std::iota(expected.begin(), expected.end(), 5000);
    std::iota(expected.begin() + 20, expected.begin() + 50, 100 * round + 10);
    EXPECT_TRUE(std::ranges::equal(theirs.elements<Number>(), expected)) << "a put, round " << round;
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      co_await pgas.copy(GlobalPtr<const Number>(theirs.pointer<Number>(20)), mine.pointer<Number>(500), 100);
    });
    EXPECT_TRUE(std::ranges::equal(mine.elements<Number>().subspan(500, 100),
                                   theirs.elements<Number>().subspan(20, 100)))
        << "a get, round " << round;
    EXPECT_EQ(mine.elements<Number>()[499], 100 * round + 499);
    EXPECT_EQ(mine.elements<Number>()[600], 100 * round + 600);
  }
}

TEST_P(DirectTest, CopiesOfMemoryOutsideOfSegments) {
  fill(theirs, 7);
  std::vector<Number> out{1, 2, 3};
  std::vector<Number> in(5);
  for (int round = 0; round < 2; ++round) {
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      co_await pgas.put(std::span(out), theirs.pointer<Number>(997));
      co_await pgas.get(theirs.pointer<Number>(995), std::span(in));
    });
    EXPECT_EQ(in, (std::vector<Number>{1002, 1003, 1, 2, 3}));
  }
  // A span may lie in the segment itself.
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.put(mine.elements<Number>().subspan(0, 10), mine.pointer<Number>(15));
  });
}

// The table of addresses has 16 places for the segments of a PE.
TEST_P(DirectTest, CopiesFromMoreSegmentsThanTheTableHolds) {
  warm_up();
  std::vector<Segment> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back(job.pgas(0).make_segment<Number>(2));
    fill(many.back(), static_cast<Number>(2 * i));
  }
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    for (std::ptrdiff_t i = 0; i < 40; ++i) {
      const GlobalPtr<Number> near = many[static_cast<std::size_t>(i)].pointer<Number>();
      co_await pgas.copy(near, theirs.pointer<Number>(2 * i), 2);
      co_await pgas.copy(GlobalPtr<const Number>(theirs.pointer<Number>(2 * i)), mine.pointer<Number>(2 * i),
                         2);
    }
  });
  std::vector<Number> expected(80);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_TRUE(std::ranges::equal(theirs.elements<Number>().subspan(0, 80), expected));
  EXPECT_TRUE(std::ranges::equal(mine.elements<Number>().subspan(0, 80), expected));
}

TEST_P(DirectTest, AWrongNearEndIsAnErrorAtTheCall) {
  warm_up();
  const auto end = static_cast<std::ptrdiff_t>(kElements);
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    EXPECT_THROW(pgas.copy(mine.pointer<Number>(end - 1), theirs.pointer<Number>(), 2).detach(), base::Error);
    EXPECT_THROW(
        pgas.copy(GlobalPtr<const Number>(theirs.pointer<Number>()), mine.pointer<Number>(end - 1), 2)
            .detach(),
        base::Error);
    co_return;
  });
}

TEST_P(DirectTest, NoBytesAreACopyToo) {
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.copy(mine.pointer<Number>(), theirs.pointer<Number>(kElements), 0);
    co_await pgas.copy(mine.pointer<Number>(), mine.pointer<Number>(), 0);
  });
}

TEST_P(DirectTest, MisuseIsFoundWhenTheSegmentIsKnown) {
  warm_up();
  fill(theirs, 3);
  const auto error_of = [&](std::function<Done(Pgas&)> start) {
    std::string why;
    job.run_on(0, [&](Pgas& pgas) -> Task<> { why = co_await pgas_error([&] { return start(pgas); }); });
    return why;
  };
  const auto end = static_cast<std::ptrdiff_t>(kElements);
  EXPECT_TRUE(says(error_of([&](Pgas& pgas) {
                     return pgas.copy(mine.pointer<Number>(), theirs.pointer<Number>(1), kElements);
                   }),
                   "byte 4 of segment 1 of PE 1 (host) does not have 4000 bytes"));
  EXPECT_TRUE(says(error_of([&](Pgas& pgas) {
                     return pgas.copy(mine.pointer<Number>(end - 1), theirs.pointer<Number>(), 2);
                   }),
                   "byte 3996 of segment 1 of PE 0"));
  EXPECT_TRUE(says(
      error_of([&](Pgas& pgas) { return pgas.copy(mine.pointer<Number>(1), mine.pointer<Number>(), 2); }),
      "overlap"));
  std::array<Number, 2> out{};
  EXPECT_TRUE(
      says(error_of([&](Pgas& pgas) { return pgas.put(std::span(out), theirs.pointer<Number>(end - 1)); }),
           "byte 3996 of segment 1 of PE 1"));
  EXPECT_TRUE(
      says(error_of([&](Pgas& pgas) { return pgas.get(theirs.pointer<Number>(end - 1), std::span(out)); }),
           "byte 3996 of segment 1 of PE 1"));
  EXPECT_TRUE(says(error_of([&](Pgas& pgas) {
                     return pgas.copy(mine.pointer<Number>(), theirs.pointer<Number>(), ~std::size_t{0});
                   }),
                   "are more than an address space has"));
  std::vector<Number> expected(kElements);
  std::iota(expected.begin(), expected.end(), 3);
  EXPECT_TRUE(std::ranges::equal(theirs.elements<Number>(), expected)) << "a refused copy wrote";
}

TEST_P(DirectTest, AFreedSegmentIsRefusedAndAnotherIsFound) {
  warm_up();
  const auto first = theirs.pointer<Number>();
  theirs = {};
  std::string why;
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    why = co_await pgas_error([&] { return pgas.copy(mine.pointer<Number>(), first, 1); });
  });
  EXPECT_TRUE(says(why, "has been freed"));
  job.settle();  // PE 0 forgets it
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    why = co_await pgas_error([&] { return pgas.copy(mine.pointer<Number>(), first, 1); });
  });
  EXPECT_TRUE(says(why, "has been freed"));
  theirs = job.pgas(1).make_segment<Number>(kElements);
  fill(mine, 40);
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.copy(mine.pointer<Number>(), theirs.pointer<Number>(), 2);
    why = co_await pgas_error([&] { return pgas.copy(mine.pointer<Number>(), first, 1); });
  });
  EXPECT_TRUE(says(why, "segment 1 of PE 1")) << "and not of its successor";
  EXPECT_EQ(theirs.elements<Number>()[1], 41U);
}

TEST_P(DirectTest, AnOperationKeepsItsOwnSegment) {
  warm_up();
  fill(mine, 60);
  std::optional<Done> copy = job.pgas(0).copy(mine.pointer<Number>(), theirs.pointer<Number>(), kElements);
  EXPECT_EQ(copy->is_done(), is_mapped());
  Future<> released = std::move(mine).release();
  EXPECT_EQ(released.is_ready(), is_mapped());
  ASSERT_EQ(job.run_until([&] { return copy->is_done() && released.is_ready(); }), "");
  EXPECT_EQ(theirs.elements<Number>().back(), 60 + kElements - 1);
}

// Both ends are freed while the copy flies, so its end is what both wait for.
TEST_P(DirectTest, ACopyEndsTheLivesOfBothItsSegments) {
  for (const std::size_t count : {std::size_t{2}, kElements}) {
    Segment from = job.pgas(0).make_segment<Number>(kElements);
    Segment to = job.pgas(1).make_segment<Number>(kElements);
    job.run_on(0, [&](Pgas& pgas) -> Task<> { co_await pgas.put(Number{0}, to.pointer<Number>()); });
    const std::size_t num_before = job.pgas(0).num_segments();
    std::optional<Done> copy = job.pgas(0).copy(from.pointer<Number>(), to.pointer<Number>(), count);
    EXPECT_EQ(copy->is_done(), is_mapped());
    Future<> from_released = std::move(from).release();
    Future<> to_released = std::move(to).release();
    EXPECT_EQ(from_released.is_ready(), is_mapped());
    ASSERT_EQ(
        job.run_until([&] { return copy->is_done() && from_released.is_ready() && to_released.is_ready(); }),
        "");
    EXPECT_EQ(job.pgas(0).num_segments(), num_before - 2);
  }
}

}  // namespace
}  // namespace weft::rma
