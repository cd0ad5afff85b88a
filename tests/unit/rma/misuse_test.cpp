#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rma/copy/copies.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using test_support::says;
using testing::pgas_error;
using testing::PgasJob;
using testing::PgasWay;

struct MisuseTest : ::testing::TestWithParam<PgasWay> {
  PgasJob job{3, GetParam()};
  Segment host = job.pgas(1).make_segment<std::uint64_t>(8);
  Segment device = job.pgas(1).make_segment<std::uint64_t>(8, {memory::Kind::kEmulated, 0});
  Segment mine = job.pgas(0).make_segment<std::uint64_t>(8);

  template <class Start>
  void expect_error(const std::vector<std::string>& parts, Start start) {
    for (int round = 0; round < 2; ++round) {  // the segment is unknown, then known
      job.run_on(0, [&](Pgas& pgas) -> Task<> {
        const std::string why = co_await pgas_error([&] { return start(pgas); });
        for (const std::string& part : parts) EXPECT_TRUE(says(why, part));
      });
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, MisuseTest,
                         ::testing::Values(PgasWay{"loopback", true}, PgasWay{"loopback", false},
                                           PgasWay{"ucx", true}),
                         [](const auto& info) {
                           return std::string(info.param.machine) + (info.param.maps ? "" : "_unmapped");
                         });

TEST_P(MisuseTest, StridesThatLeaveTheSegmentAreRefusedBeforeTheBlocksAreListed) {
  const std::ptrdiff_t strides[] = {16};
  const std::size_t extents[] = {std::size_t{1} << 40};  // more than could be listed
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    const auto start = mine.pointer<std::uint64_t>(1);
    const std::string why = co_await pgas_error(
        [&] { return pgas.copy_strided<std::uint64_t>(start, strides, start, strides, extents); });
    EXPECT_TRUE(says(why, "byte 8 of segment"));
    EXPECT_TRUE(says(why, "the segment has 64 bytes"));
  });
}

TEST_P(MisuseTest, PartsOfACopyThatOverlap) {
  std::uint64_t local[3] = {};
  const std::vector<rma::Run> runs{{0, 0, 8}, {16, 16, 8}};
  const auto overlap = [&](Pgas& pgas, const std::vector<std::pair<CopyEnd, CopyEnd>>& ends) {
    std::vector<CopyPart> parts;
    for (const auto& [from, to] : ends) parts.push_back({runs, from, to});
    try {
      pgas.expect_apart(parts);
    } catch (const base::Error& error) {
      EXPECT_TRUE(says(error.what(), "overlap"));
      return true;
    }
    return false;
  };
  for (const Segment* const segment : {&host, &device}) {
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      const auto at = [](const Segment& of, std::ptrdiff_t offset) {
        return CopyEnd(of.address().moved_by(offset));
      };
      for (const bool is_known : {false, true}) {
        if (is_known) co_await pgas.learn(segment->address());
        const bool reads_what_is_written =
            overlap(pgas, {{at(*segment, 0), at(mine, 0)}, {at(mine, 16), at(*segment, 32)}});
        EXPECT_TRUE(reads_what_is_written);
        EXPECT_TRUE(overlap(pgas, {{at(mine, 0), at(*segment, 0)}, {at(*segment, 16), at(mine, 32)}}));
        EXPECT_FALSE(overlap(pgas, {{at(*segment, 0), at(mine, 0)}, {at(mine, 8), at(*segment, 8)}}))
            << "the blocks interleave";
        EXPECT_FALSE(overlap(pgas, {{at(*segment, 0), at(mine, 0)}, {at(*segment, 0), at(mine, 8)}}));
      }
      // The memory of an own segment by its address.
      auto* const address = reinterpret_cast<std::byte*>(pgas.local(mine.pointer<std::uint64_t>()));
      const CopyEnd same(memory::Buffer{address + 16, 24, {}, nullptr});
      const CopyEnd other(memory::Buffer{local, sizeof local, {}, nullptr});
      EXPECT_TRUE(overlap(pgas, {{at(*segment, 0), same}, {at(mine, 16), at(*segment, 32)}}));
      EXPECT_FALSE(overlap(pgas, {{at(*segment, 0), other}, {at(mine, 16), at(*segment, 32)}}));
    });
  }
}

TEST_P(MisuseTest, OutsideOfTheSegment) {
  for (const Segment* segment : {&host, &device}) {
    const auto end = segment->pointer<std::uint64_t>(8);
    expect_error({"byte 64 of segment", "of PE 1", "the segment has 64 bytes"},
                 [&](Pgas& pgas) { return pgas.put(1, end); });
    expect_error({"byte 57 of segment"}, [&](Pgas& pgas) {
      return pgas.put(1, GlobalPtr<std::uint64_t>(segment->address().moved_by(57)));
    });
    expect_error({"byte -8 of segment"}, [&](Pgas& pgas) { return pgas.put(1, end - 9); });
    expect_error({"byte 8 of segment", "64 bytes behind it"}, [&](Pgas& pgas) {
      return pgas.copy(mine.pointer<std::uint64_t>(), segment->pointer<std::uint64_t>(1), 8);
    });
    expect_error({"byte 8 of segment"}, [&](Pgas& pgas) {
      return pgas.copy(segment->pointer<std::uint64_t>(1), mine.pointer<std::uint64_t>(), 8);
    });
    expect_error({"behind it"}, [&](Pgas& pgas) {
      return pgas.copy(segment->pointer<std::uint8_t>(1), mine.pointer<std::uint8_t>(), ~std::size_t{0});
    });
    expect_error({"byte 9223372036854775807"}, [&](Pgas& pgas) {
      return pgas.put(std::uint8_t{1}, segment->pointer<std::uint8_t>(PTRDIFF_MAX));
    });
  }
  for (const std::uint64_t value : mine.elements<std::uint64_t>()) EXPECT_EQ(value, 0U);
}

TEST_P(MisuseTest, PointersThatLeadNowhere) {
  expect_error({"the null pointer"}, [](Pgas& pgas) { return pgas.put(1, GlobalPtr<int>()); });
  expect_error({"the null pointer"}, [](Pgas& pgas) { return pgas.put(1, GlobalPtr<int>() + 1); });
  const auto at = [](int pe, std::uint32_t segment, memory::Kind kind) {
    return GlobalPtr<int>(GlobalAddress(pe, segment, kind, 0));
  };
  expect_error({"segment 1 of PE 3", "PEs 0 to 2"},
               [&](Pgas& pgas) { return pgas.put(1, at(3, 1, memory::Kind::kHost)); });
  expect_error({"segment 1 of PE -1"},
               [&](Pgas& pgas) { return pgas.put(1, at(-1, 1, memory::Kind::kHost)); });
  expect_error({"segment 99 of PE 1", "never had"},
               [&](Pgas& pgas) { return pgas.put(1, at(1, 99, memory::Kind::kHost)); });
  expect_error({"segment 99 of PE 0", "never had"},
               [&](Pgas& pgas) { return pgas.put(1, at(0, 99, memory::Kind::kHost)); });
  EXPECT_EQ(job.pgas(0).num_segments(), 1U) << "refused questions leave nothing";
}

TEST_P(MisuseTest, AWrongKind) {
  const auto as = [](const Segment& segment, memory::Kind kind) {
    return GlobalPtr<int>(GlobalAddress(segment.address().pe(), segment.address().segment(), kind, 0));
  };
  expect_error({"segment 1 of PE 1 (emulated)", "the segment is host memory"},
               [&](Pgas& pgas) { return pgas.put(1, as(host, memory::Kind::kEmulated)); });
  expect_error({"segment 2 of PE 1 (host)", "the segment is emulated memory"},
               [&](Pgas& pgas) { return pgas.put(1, as(device, memory::Kind::kHost)); });
  expect_error({"the segment is host memory"},
               [&](Pgas& pgas) { return pgas.put(1, as(mine, static_cast<memory::Kind>(200))); });
}

TEST_P(MisuseTest, Overlap) {
  for (const Segment* segment : {&host, &device, &mine}) {
    expect_error({"overlap", "byte 0 of segment", "byte 8 of segment"}, [&](Pgas& pgas) {
      return pgas.copy(segment->pointer<std::uint64_t>(), segment->pointer<std::uint64_t>(1), 2);
    });
  }
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.copy(host.pointer<std::uint64_t>(), host.pointer<std::uint64_t>(4), 4);
  });
}

// Memory of this PE that is given as such, and lies in the segment too.
TEST_P(MisuseTest, OverlapWithLocalMemory) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;  // elements: the CPU copies it in parts
  const Segment large = job.pgas(0).make_segment<std::uint64_t>(kLarge + 1);
  const std::span<std::uint64_t> elements = large.elements<std::uint64_t>();
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = i;
  for (const std::size_t count : {std::size_t{2}, kLarge}) {
    expect_error({"overlap", "byte 8 of segment"}, [&](Pgas& pgas) {
      return pgas.put(std::span<const std::uint64_t>(elements.first(count)), large.pointer<std::uint64_t>(1));
    });
    expect_error({"overlap", "byte 8 of segment"}, [&](Pgas& pgas) {
      return pgas.get(large.pointer<std::uint64_t>(1), elements.first(count));
    });
  }
  for (std::size_t i = 0; i < elements.size(); ++i) ASSERT_EQ(elements[i], i);
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    co_await pgas.put(std::span<const std::uint64_t>(elements.first(1)), large.pointer<std::uint64_t>(1));
  });
  EXPECT_EQ(elements[1], 0U);
}

TEST_P(MisuseTest, ACopyThatIsRefusedAtTheCallFailsItsSource) {
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    Completions completions;
    completions.source.emplace(pgas.runtime());
    const Future<> source = *completions.source;
    EXPECT_TRUE(says(test_support::thrown_by([&] {
                       static_cast<void>(pgas.copy(mine.pointer<std::uint64_t>(),
                                                   mine.pointer<std::uint64_t>(7), 2, completions));
                     }),
                     "does not have"));
    EXPECT_TRUE(says(co_await test_support::error_of(source), "does not have"));
  });
}

TEST_P(MisuseTest, ACopyWhoseShapeIsRefusedFailsItsSource) {
  const auto at = [&](std::ptrdiff_t index) { return mine.pointer<std::uint64_t>(index); };
  const std::array<std::ptrdiff_t, 9> strides{};
  const std::array<std::size_t, 9> extents{1, 1, 1, 1, 1, 1, 1, 1, 1};
  using Start = std::function<Done(Pgas&, Completions)>;
  const std::pair<Start, std::string> cases[] = {
      {[&](Pgas& pgas, Completions completions) {
         return pgas.copy_strided<std::uint64_t>(at(0), strides, at(1), strides, extents, completions);
       },
       "9 dimensions"},
      {[&](Pgas& pgas, Completions completions) {
         const std::span<const std::ptrdiff_t> index(strides);
         return pgas.copy_indexed<std::uint64_t>(at(0), index.first(2), at(1), index.first(1), 1,
                                                 completions);
       },
       "2 indices"},
      {[&](Pgas& pgas, Completions completions) {
         return pgas.copy(at(0), at(1), std::size_t{1} << 62, completions);
       },
       "address space"},
  };
  for (const auto& [start, why] : cases) {
    job.run_on(0, [&](Pgas& pgas) -> Task<> {
      Completions completions;
      completions.source.emplace(pgas.runtime());
      const Future<> source = *completions.source;
      EXPECT_TRUE(says(test_support::thrown_by([&] { static_cast<void>(start(pgas, completions)); }), why));
      EXPECT_TRUE(source.is_ready()) << why;
      if (!source.is_ready()) co_return;
      EXPECT_TRUE(says(co_await test_support::error_of(source), why));
    });
  }
}

TEST_P(MisuseTest, AFreedSegmentInACopy) {
  const GlobalAddress freed = job.pgas(2).make_segment<std::uint64_t>(8).address();
  expect_error({"segment 1 of PE 2", "has been freed"}, [&](Pgas& pgas) {
    return pgas.copy(mine.pointer<std::uint64_t>(), GlobalPtr<std::uint64_t>(freed), 1);
  });
  expect_error({"segment 1 of PE 2", "has been freed"}, [&](Pgas& pgas) {
    return pgas.copy(host.pointer<std::uint64_t>(), GlobalPtr<std::uint64_t>(freed), 1);
  });
}

TEST_P(MisuseTest, AFailedCopyFailsItsSource) {
  job.run_on(0, [&](Pgas& pgas) -> Task<> {
    Completions completions;
    completions.source.emplace(pgas.runtime());
    const Future<> source = *completions.source;
    std::string why = co_await pgas_error([&] {
      return pgas.copy(mine.pointer<std::uint64_t>(),
                       GlobalPtr<std::uint64_t>(GlobalAddress(1, 99, memory::Kind::kHost, 0)), 1,
                       completions);
    });
    EXPECT_TRUE(says(
        why, "a copy of 8 bytes from byte 0 of segment 1 of PE 0 (host) to byte 0 of segment 99 of PE 1"));
    why = co_await test_support::error_of(source);
    EXPECT_TRUE(says(why, "never had"));
  });
}

}  // namespace
}  // namespace weft::rma
