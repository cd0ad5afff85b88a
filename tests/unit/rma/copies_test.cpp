#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using testing::PgasJob;
using testing::PgasWay;

enum class CopyPlace : std::uint8_t { kHost, kCallers, kDevice };

struct CopyWay {
  PgasWay way;
  CopyPlace from;
  CopyPlace to;
  int from_pe;
  int to_pe;
};

std::string copy_way_name(const CopyWay& way) {
  constexpr const char* kNames[] = {"host", "callers", "device"};
  return std::string(way.way.machine) + (way.way.maps ? "" : "_unmapped") + "_" +
         kNames[static_cast<int>(way.from)] + std::to_string(way.from_pe) + "_" +
         kNames[static_cast<int>(way.to)] + std::to_string(way.to_pe);
}

// PE 0 copies: from itself, to itself, both, or neither.
std::vector<CopyWay> copy_ways() {
  std::vector<CopyWay> ways;
  for (const PgasWay way :
       {PgasWay{"loopback", true}, PgasWay{"loopback", false}, PgasWay{"ucx", true}, PgasWay{"ucx", false}}) {
    for (const CopyPlace from : {CopyPlace::kHost, CopyPlace::kCallers, CopyPlace::kDevice}) {
      for (const CopyPlace to : {CopyPlace::kHost, CopyPlace::kCallers, CopyPlace::kDevice}) {
        for (const auto& [from_pe, to_pe] :
             {std::pair{0, 0}, std::pair{0, 1}, std::pair{1, 0}, std::pair{1, 1}, std::pair{1, 2}}) {
          ways.push_back({way, from, to, from_pe, to_pe});
        }
      }
    }
  }
  return ways;
}

struct CopiesTest : ::testing::TestWithParam<CopyWay> {
  static constexpr std::size_t kElements = 5000;

  PgasJob job{3, GetParam().way};
  std::vector<std::vector<std::uint32_t>> memory;

  Segment make(CopyPlace place, int pe, std::uint32_t first) {
    Segment made;
    if (place == CopyPlace::kCallers) {
      memory.emplace_back(kElements);
      made = job.pgas(pe).make_segment_at(memory.back().data(), kElements * sizeof(std::uint32_t));
    } else {
      made = job.pgas(pe).make_segment<std::uint32_t>(
          kElements, place == CopyPlace::kHost ? memory::Place{} : memory::Place{memory::Kind::kEmulated, 0});
    }
    std::iota(values(made, pe).begin(), values(made, pe).end(), first);
    return made;
  }
  std::span<std::uint32_t> values(const Segment& segment, int pe) {
    return {reinterpret_cast<std::uint32_t*>(job.bytes(pe, segment).data()), kElements};
  }
  void SetUp() override {
    memory.reserve(2);
    from = make(GetParam().from, GetParam().from_pe, 1'000'000);
    to = make(GetParam().to, GetParam().to_pe, 0);
  }
  // The target must be as `expected`.
  void expect_target(const std::vector<std::uint32_t>& expected) {
    const auto now = values(to, GetParam().to_pe);
    EXPECT_TRUE(std::ranges::equal(now, expected));
  }
  std::vector<std::uint32_t> target_before() {
    const auto now = values(to, GetParam().to_pe);
    return {now.begin(), now.end()};
  }

  Segment from;
  Segment to;
};

INSTANTIATE_TEST_SUITE_P(Ways, CopiesTest, ::testing::ValuesIn(copy_ways()),
                         [](const auto& info) { return copy_way_name(info.param); });

TEST_P(CopiesTest, CopiesWhatIsNamedAndNothingElse) {
  auto expected = target_before();
  for (std::size_t i = 0; i < 4000; ++i) expected[500 + i] = static_cast<std::uint32_t>(1'000'100 + i);
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.copy(from.pointer<std::uint32_t>(100), to.pointer<std::uint32_t>(500), 4000);
    co_await pgas.copy(from.pointer<std::uint32_t>(100), to.pointer<std::uint32_t>(500), 0);
  });
  expect_target(expected);
}

TEST_P(CopiesTest, TellsTheEnds) {
  struct Seen {
    int source_pe = -1;
    std::uint32_t function = 0;
    std::string bytes;
    std::uint32_t value = 0;
    Seen* self = nullptr;
    CopiesTest* test = nullptr;
  };
  Seen seen;
  seen.test = this;
  const int target_pe = GetParam().to_pe;
  job.pgas(target_pe).set_remote_hook(
      [](void* context, int source_pe, std::uint32_t function, std::span<const std::byte> bytes) {
        auto& into = *static_cast<Seen*>(context);
        into.source_pe = source_pe;
        into.function = function;
        into.bytes.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        into.value = into.test->values(into.test->to, GetParam().to_pe)[0];  // the data is visible already
      },
      &seen);
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    Completions completions;
    completions.source.emplace(pgas.runtime());
    completions.remote = RemoteCompletion{42, {std::byte{'h'}, std::byte{'i'}}};
    const Future<> source = *completions.source;
    Done done =
        pgas.copy(from.pointer<std::uint32_t>(7), to.pointer<std::uint32_t>(), 100, std::move(completions));
    co_await source;
    co_await done;
  });
  ASSERT_EQ(job.run_until([&] { return seen.source_pe >= 0; }), "");
  EXPECT_EQ(seen.source_pe, 0);
  EXPECT_EQ(seen.function, 42U);
  EXPECT_EQ(seen.bytes, "hi");
  EXPECT_EQ(seen.value, 1'000'007U);
  // The same of a copy whose runs travel together.
  seen.source_pe = -1;
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    Completions completions;
    completions.source.emplace(pgas.runtime());
    completions.remote = RemoteCompletion{43, {}};
    const Future<> source = *completions.source;
    const std::ptrdiff_t spread[] = {12}, dense[] = {4};
    const std::size_t elements[] = {100};
    Done done =
        pgas.copy_strided<std::uint32_t>(from.pointer<std::uint32_t>(9), spread, to.pointer<std::uint32_t>(),
                                         dense, elements, std::move(completions));
    co_await source;
    co_await done;
  });
  ASSERT_EQ(job.run_until([&] { return seen.source_pe >= 0; }), "");
  EXPECT_EQ(seen.function, 43U);
  EXPECT_EQ(seen.value, 1'000'009U);
}

TEST_P(CopiesTest, StridedRows) {
  // A block of 10 rows of 7 elements, out of rows of 50 into rows of 20; upside down.
  auto expected = target_before();
  for (std::size_t row = 0; row < 10; ++row) {
    for (std::size_t i = 0; i < 7; ++i) {
      expected[3 + row * 20 + i] = static_cast<std::uint32_t>(1'000'000 + 900 - 50 * row + i);
    }
  }
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    const std::ptrdiff_t from_strides[] = {-200, 4};
    const std::ptrdiff_t to_strides[] = {80, 4};
    const std::size_t extents[] = {10, 7};
    co_await pgas.copy_strided<std::uint32_t>(from.pointer<std::uint32_t>(900), from_strides,
                                              to.pointer<std::uint32_t>(3), to_strides, extents);
  });
  expect_target(expected);
}

TEST_P(CopiesTest, StridedBlocksInThreeDimensions) {
  // 3 x 4 x 2 elements out of 10 x 10 x 10 into 5 x 6 x 7.
  auto expected = target_before();
  for (std::size_t x = 0; x < 3; ++x) {
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t z = 0; z < 2; ++z) {
        expected[x * 42 + y * 7 + z] = static_cast<std::uint32_t>(1'000'000 + 555 + x * 100 + y * 10 + z);
      }
    }
  }
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    const std::ptrdiff_t from_strides[] = {400, 40, 4};
    const std::ptrdiff_t to_strides[] = {168, 28, 4};
    const std::size_t extents[] = {3, 4, 2};
    co_await pgas.copy_strided<std::uint32_t>(from.pointer<std::uint32_t>(555), from_strides,
                                              to.pointer<std::uint32_t>(), to_strides, extents);
  });
  expect_target(expected);
}

// Elements that adjoin at one end, all of them or by rows.
TEST_P(CopiesTest, StridedToDenseAndBack) {
  auto expected = target_before();
  for (std::size_t i = 0; i < 400; ++i) {
    expected[20 + i] = static_cast<std::uint32_t>(1'000'000 + 4000 - 3 * i);
    expected[1000 + 5 * i] = static_cast<std::uint32_t>(1'000'000 + 7 + i);
  }
  for (std::size_t row = 0; row < 20; ++row) {
    for (std::size_t i = 0; i < 4; ++i) {
      expected[4000 + row * 9 + i] = static_cast<std::uint32_t>(1'000'000 + 100 + row * 40 + 2 * i);
      expected[3200 + row * 30 + 2 * i] = static_cast<std::uint32_t>(1'000'000 + 2000 + row * 9 + i);
    }
  }
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    const auto copy = [&](std::ptrdiff_t source, Strides from_strides, std::ptrdiff_t target,
                          Strides to_strides, Extents extents) {
      return pgas.copy_strided<std::uint32_t>(from.pointer<std::uint32_t>(source), from_strides,
                                              to.pointer<std::uint32_t>(target), to_strides, extents);
    };
    const std::ptrdiff_t backwards[] = {-12}, dense[] = {4}, spread[] = {20};
    const std::size_t elements[] = {400};
    co_await copy(4000, backwards, 20, dense, elements);
    co_await copy(7, dense, 1000, spread, elements);
    const std::ptrdiff_t by_two[] = {160, 8}, in_rows[] = {36, 4};
    const std::size_t rows[] = {20, 4};
    co_await copy(100, by_two, 4000, in_rows, rows);
    const std::ptrdiff_t apart[] = {120, 8};
    co_await copy(2000, in_rows, 3200, apart, rows);
  });
  expect_target(expected);
}

TEST_P(CopiesTest, IndexedBlocks) {
  auto expected = target_before();
  const std::vector<std::ptrdiff_t> from_index{4000, 0, 77, 1500};
  const std::vector<std::ptrdiff_t> to_index{0, 4990, 300, 20};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < 5; ++k) {
      expected[static_cast<std::size_t>(to_index[i]) + k] =
          static_cast<std::uint32_t>(1'000'000 + from_index[i] + static_cast<std::ptrdiff_t>(k));
    }
  }
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.copy_indexed<std::uint32_t>(from.pointer<std::uint32_t>(), from_index,
                                              to.pointer<std::uint32_t>(), to_index, 5);
  });
  expect_target(expected);
}

// Through the machine, in pieces of up to 4 MiB.
TEST(Copies, RunsThatAdjoinAtTheOtherEndTravelAsOne) {
  constexpr std::size_t kElements = 3'300'000;
  PgasJob job(2, {"loopback", false});
  Segment mine = job.pgas(0).make_segment<std::uint32_t>(kElements);
  Segment theirs = job.pgas(1).make_segment<std::uint32_t>(kElements);
  const auto num_transfers = [&] {
    std::uint64_t count = 0;
    for (const machine::TransportUse& use : job.runtime(0).machine().transport_use()) {
      if (use.type == machine::TransferType::kPut || use.type == machine::TransferType::kGet)
        count += use.messages;
    }
    return count;
  };
  const std::ptrdiff_t spread[] = {12}, dense[] = {4}, by_two[] = {160, 8}, in_rows[] = {36, 4};
  const std::size_t elements[] = {1000}, few[] = {7}, rows[] = {20, 4}, many[] = {1'100'000};
  struct Case {
    Strides mine, theirs;
    Extents extents;
    std::uint64_t transfers;
  };
  for (const Case& one :
       {Case{spread, dense, elements, 1}, Case{by_two, in_rows, rows, 20},
        Case{spread, spread, elements, 1000}, Case{spread, dense, few, 7}, Case{spread, dense, many, 2}}) {
    const auto index_of = [&](Strides strides, std::size_t number) {
      std::ptrdiff_t bytes = 0;
      for (std::size_t d = one.extents.size(); d-- > 0;) {
        bytes += strides[d] * static_cast<std::ptrdiff_t>(number % one.extents[d]);
        number /= one.extents[d];
      }
      return static_cast<std::size_t>(bytes) / sizeof(std::uint32_t);
    };
    std::size_t count = 1;
    for (const std::size_t extent : one.extents) count *= extent;
    const std::span<std::uint32_t> near = mine.elements<std::uint32_t>();
    const std::span<std::uint32_t> far = theirs.elements<std::uint32_t>();
    const auto expect_copied = [&](std::span<const std::uint32_t> to, Strides strides, std::uint32_t first) {
      std::size_t right = 0;
      for (std::size_t i = 0; i < count; ++i) right += to[index_of(strides, i)] == first + i ? 1 : 0;
      EXPECT_EQ(right, count);
      EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(to, 0U)), to.size() - count) << "and no others";
    };
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      co_await pgas.learn(theirs.pointer<std::uint32_t>().address());
      std::ranges::fill(far, 0U);
      for (std::size_t i = 0; i < count; ++i) near[index_of(one.mine, i)] = static_cast<std::uint32_t>(1 + i);
      std::uint64_t before = num_transfers();
      co_await pgas.copy_strided<std::uint32_t>(mine.pointer<std::uint32_t>(), one.mine,
                                                theirs.pointer<std::uint32_t>(), one.theirs, one.extents);
      EXPECT_EQ(num_transfers() - before, one.transfers) << "puts";
      expect_copied(far, one.theirs, 1);
      std::ranges::fill(near, 0U);
      for (std::size_t i = 0; i < count; ++i)
        far[index_of(one.theirs, i)] = static_cast<std::uint32_t>(100 + i);
      before = num_transfers();
      co_await pgas.copy_strided<std::uint32_t>(
          GlobalPtr<const std::uint32_t>(theirs.pointer<std::uint32_t>()), one.theirs,
          mine.pointer<std::uint32_t>(), one.mine, one.extents);
      EXPECT_EQ(num_transfers() - before, one.transfers) << "gets";
      expect_copied(near, one.mine, 100);
    });
  }
}

// To pack for one run less would cost more than it gains.
TEST(Copies, RunsThatHardlyAdjoinTravelAlone) {
  PgasJob job(2, {"loopback", false});
  Segment mine = job.pgas(0).make_segment<std::uint32_t>(300);
  Segment theirs = job.pgas(1).make_segment<std::uint32_t>(300);
  std::vector<std::ptrdiff_t> from_index;
  std::vector<std::ptrdiff_t> to_index;
  for (std::ptrdiff_t i = 0; i < 100; ++i) {
    from_index.push_back(3 * i);
    to_index.push_back(i == 99 ? 197 : 2 * i);
  }
  std::ranges::fill(mine.elements<std::uint32_t>(), 7U);
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.learn(theirs.pointer<std::uint32_t>().address());
    co_await pgas.copy_indexed<std::uint32_t>(mine.pointer<std::uint32_t>(), from_index,
                                              theirs.pointer<std::uint32_t>(), to_index, 1);
  });
  std::uint64_t num_puts = 0;
  for (const machine::TransportUse& use : job.runtime(0).machine().transport_use()) {
    if (use.type == machine::TransferType::kPut) num_puts += use.messages;
  }
  EXPECT_EQ(num_puts, 100U);
  EXPECT_EQ(std::ranges::count(theirs.elements<std::uint32_t>(), 7U), 100);
}

TEST(Copies, LocalMemoryOfAnyKind) {
  for (const PgasWay way : {PgasWay{"loopback", true}, PgasWay{"ucx", false}}) {
    PgasJob job(2, way);
    Segment segment = job.pgas(1).make_segment<std::uint8_t>(300);
    testing::TestMemory device(job.memory(0), {memory::Kind::kEmulated, 0}, 300, 9);
    std::vector<std::uint8_t> got(300);
    const std::span<std::uint8_t> on_device(static_cast<std::uint8_t*>(device.buffer().data), 300);
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      co_await pgas.put(on_device, segment.pointer<std::uint8_t>());
      co_await pgas.get(segment.pointer<std::uint8_t>(), std::span(got));
      co_await pgas.get(segment.pointer<const std::uint8_t>(10), on_device.first(100));
    });
    EXPECT_EQ(got, device.filled());
    EXPECT_EQ(device.now()[0], device.filled()[10]);
  }
}

TEST(Copies, StartAfterTheWorkOfTheirStream) {
  for (const bool maps : {true, false}) {
    PgasJob job(2, PgasWay{"loopback", maps});
    Segment from = job.pgas(0).make_segment<std::uint8_t>(16, {memory::Kind::kEmulated, 0});
    Segment to = job.pgas(1).make_segment<std::uint8_t>(16);
    auto& kind = testing::emulated(job.memory(0));
    bool may_end = false;
    const memory::StreamHandle stream = testing::stream_with(kind, 0, testing::until(may_end));
    Completions completions;
    completions.source_stream = stream;
    Done done = job.pgas(0).copy(from.pointer<std::uint8_t>(), to.pointer<std::uint8_t>(), 16,
                                 std::move(completions));
    for (int turn = 0; turn < 200; ++turn) {
      for (int pe = 0; pe < 2; ++pe) job.runtime(pe).step();
    }
    EXPECT_FALSE(done.is_done());
    std::ranges::fill(job.bytes(0, from), std::uint8_t{77});
    may_end = true;
    ASSERT_EQ(job.run_until([&] { return done.is_done(); }), "");
    EXPECT_EQ(job.bytes(1, to)[15], 77);
  }
}

TEST(Copies, QueuedOnAStream) {
  PgasJob job(2);
  constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};
  Segment theirs = job.pgas(1).make_segment<std::uint8_t>(16, kDevice);
  Segment host = job.pgas(1).make_segment<std::uint8_t>(16);
  Segment mine = job.pgas(0).make_segment<std::uint8_t>(16, kDevice);
  const auto at = [](const Segment& segment) { return segment.pointer<std::uint8_t>(); };
  auto& kind = testing::emulated(job.memory(0));
  bool may_end = false;
  const memory::StreamHandle stream = testing::stream_with(kind, 0, testing::until(may_end));
  Pgas& pgas = job.pgas(0);
  const auto error = [&](GlobalPtr<std::uint8_t> from, GlobalPtr<std::uint8_t> to, std::size_t count) {
    return test_support::thrown_by([&] { pgas.copy_on_stream(from, to, count, kDevice, stream).detach(); });
  };
  EXPECT_TRUE(test_support::says(error(at(mine), at(theirs), 16), "learn()"));
  job.run_on(0, [&](Pgas& from) -> Task<> {
    co_await from.learn(theirs.address());
    co_await from.learn(host.address());
  });
  EXPECT_TRUE(test_support::says(error(at(mine), at(theirs), 17), "byte 0 of segment 1 of PE 0"));
  EXPECT_TRUE(test_support::says(error(at(host), at(host) + 8, 8), "neither end"));
  std::ranges::fill(job.bytes(0, mine), std::uint8_t{1});
  Done there = pgas.copy_on_stream(at(mine), at(theirs), 16, kDevice, stream);
  Done on = pgas.copy_on_stream(at(theirs), at(host), 16, kDevice, stream);
  for (int turn = 0; turn < 200; ++turn) {
    for (int pe = 0; pe < 2; ++pe) job.runtime(pe).step();
  }
  EXPECT_FALSE(there.is_done());
  std::ranges::fill(job.bytes(0, mine), std::uint8_t{77});
  theirs = {};  // its memory stays until the stream is done
  may_end = true;
  ASSERT_EQ(job.run_until([&] { return there.is_done() && on.is_done(); }), "");
  EXPECT_EQ(job.bytes(1, host)[15], 77);
}

TEST(Copies, LargeOnesInHostMemoryLetThePeTakeTurns) {
  PgasJob job(2);
  constexpr std::size_t kBytes = (std::size_t{9} << 20) + 5;
  Segment from = job.pgas(1).make_segment<std::uint8_t>(kBytes);
  Segment to = job.pgas(0).make_segment<std::uint8_t>(kBytes);
  from.elements<std::uint8_t>().back() = 9;
  from.elements<std::uint8_t>()[kBytes / 2] = 8;
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.learn(from.address());
    Done copy = pgas.copy(from.pointer<std::uint8_t>(), to.pointer<std::uint8_t>(), kBytes);
    EXPECT_FALSE(copy.is_done());
    co_await copy;
  });
  EXPECT_TRUE(std::ranges::equal(from.elements<std::uint8_t>(), to.elements<std::uint8_t>()));
}

TEST(Copies, FuturesAndCallbacks) {
  PgasJob job(2);
  Segment segment = job.pgas(1).make_segment<int>(4);
  Future<> later = job.pgas(0).put(5, segment.pointer<int>()).as_future();
  Future<int> value = job.pgas(0).get(segment.pointer<int>()).as_future();
  Status failed;
  job.pgas(0).put(5, segment.pointer<int>(4)).then([&](const Status& status) { failed = status; });
  EXPECT_FALSE(later.is_ready());
  ASSERT_EQ(job.run_until([&] { return later.is_ready() && value.is_ready() && failed.failed(); }), "");
  EXPECT_EQ(failed.code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(job.pgas(0).put(5, segment.pointer<int>()).as_future().is_ready());
  EXPECT_EQ(job.pgas(0).get(segment.pointer<int>()).as_future().get(), 5);
  bool called = false;
  job.pgas(0).put(6, segment.pointer<int>()).then([&](const Status& status) { called = status.ok(); });
  EXPECT_TRUE(called) << "the operation is over already";
}

TEST(Copies, AnUnawaitedFailureEndsTheJob) {
  PgasJob job(2);
  Segment segment = job.pgas(1).make_segment<int>(4);
  job.pgas(0).put(5, segment.pointer<int>(4)).detach();
  const std::string failure = job.run_until([] { return false; });
  EXPECT_TRUE(test_support::says(failure, "byte 16 of segment 1 of PE 1"));
}

}  // namespace
}  // namespace weft::rma
