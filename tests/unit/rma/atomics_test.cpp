#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "weft/runtime/observer.h"

#include "rma/atomic/words.h"
#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using testing::PgasJob;
using testing::PgasWay;

enum class AtomicPlace : std::uint8_t { kHostSegment, kCallersMemory, kDeviceSegment };

struct AtomicWay {
  const char* name;
  PgasWay way;
  AtomicPlace place;
  int caller;
};

struct AtomicsTest : ::testing::TestWithParam<AtomicWay> {
  PgasJob job{2, GetParam().way};
  alignas(64) std::array<std::byte, 64> memory{};
  Segment make() {
    const AtomicPlace place = GetParam().place;
    if (place == AtomicPlace::kCallersMemory)
      return job.pgas(0).make_segment_at(memory.data(), memory.size());
    Segment made = job.pgas(0).make_segment(
        64, place == AtomicPlace::kHostSegment ? memory::Place{} : memory::Place{memory::Kind::kEmulated, 0});
    std::ranges::fill(job.bytes(0, made), std::uint8_t{0});
    return made;
  }
  template <class T>
  T now(const Segment& segment, std::size_t index) {
    return reinterpret_cast<const T*>(job.bytes(0, segment).data())[index];
  }
};

std::vector<AtomicWay> atomic_ways() {
  const PgasWay mapped{"loopback", true};
  const PgasWay unmapped{"loopback", false};
  const PgasWay ucx{"ucx", false};
  return {{"host_own", mapped, AtomicPlace::kHostSegment, 0},
          {"host_mapped", mapped, AtomicPlace::kHostSegment, 1},
          {"host_unmapped", unmapped, AtomicPlace::kHostSegment, 1},
          {"host_unmapped_ucx", ucx, AtomicPlace::kHostSegment, 1},
          {"callers_own", mapped, AtomicPlace::kCallersMemory, 0},
          {"callers", mapped, AtomicPlace::kCallersMemory, 1},
          {"device_own", mapped, AtomicPlace::kDeviceSegment, 0},
          {"device", mapped, AtomicPlace::kDeviceSegment, 1},
          {"device_unmapped", unmapped, AtomicPlace::kDeviceSegment, 1}};
}

INSTANTIATE_TEST_SUITE_P(Ways, AtomicsTest, ::testing::ValuesIn(atomic_ways()),
                         [](const auto& info) { return std::string(info.param.name); });

// The owner's memory begins at an address that is no multiple of 8, so an offset says nothing.
TEST(Atomics, TheAddressCountsAndNotTheOffset) {
  for (const bool maps : {true, false}) {
    PgasJob job(2, PgasWay{"loopback", maps});
    alignas(8) std::array<std::byte, 64> memory{};
    const Segment segment = job.pgas(0).make_segment_at(memory.data() + 4, 56);
    const GlobalPtr<std::uint64_t> aligned(segment.address().moved_by(4));
    const GlobalPtr<std::uint64_t> misaligned(segment.address());
    for (const int caller : {0, 1, 1}) {
      job.run_on(caller, [&](Pgas& pgas) -> Task<> {
        co_await pgas.fetch_add(aligned, std::uint64_t{1});
        std::string why;
        try {
          co_await pgas.fetch_add(misaligned, std::uint64_t{1});
        } catch (const base::Error& error) {
          why = error.what();
        }
        EXPECT_NE(why, "");
      });
    }
    std::uint64_t value = 0;
    std::memcpy(&value, memory.data() + 8, sizeof value);
    EXPECT_EQ(value, 3U);
    EXPECT_EQ(memory[4], std::byte{0});
  }
}

template <class T>
Task<> integers(Pgas& pgas, GlobalPtr<T> at) {
  EXPECT_EQ(co_await pgas.fetch_add(at, T(5)), T(0));
  EXPECT_EQ(co_await pgas.fetch_add(at, T(-7)), T(5));
  EXPECT_EQ(co_await pgas.atomic_load(at), T(-2));
  EXPECT_EQ(co_await pgas.exchange(at, T(12)), T(-2));
  EXPECT_EQ(co_await pgas.compare_exchange(at, T(11), T(1)), T(12));
  EXPECT_EQ(co_await pgas.compare_exchange(at, T(12), T(0b1100)), T(12));
  EXPECT_EQ(co_await pgas.fetch_and(at, T(0b0110)), T(0b1100));
  EXPECT_EQ(co_await pgas.fetch_or(at, T(0b0011)), T(0b0100));
  EXPECT_EQ(co_await pgas.fetch_xor(at, T(0b0101)), T(0b0111));
  EXPECT_EQ(co_await pgas.atomic_load(at), T(0b0010));
  co_await pgas.atomic_store(at, std::numeric_limits<T>::max());
  EXPECT_EQ(co_await pgas.fetch_add(at, T(1)), std::numeric_limits<T>::max()) << "it wraps";
  EXPECT_EQ(co_await pgas.atomic_load(at), std::numeric_limits<T>::min());
}

TEST_P(AtomicsTest, IntegersOf32And64Bits) {
  Segment segment = make();
  job.run_on(GetParam().caller, [&](Pgas& pgas) -> Task<> {
    co_await integers(pgas, segment.pointer<std::int32_t>(1));
    co_await integers(pgas, segment.pointer<std::uint32_t>(2));
    co_await integers(pgas, segment.pointer<std::int64_t>(3));
    co_await integers(pgas, segment.pointer<std::uint64_t>(4));
  });
  EXPECT_EQ(now<std::int32_t>(segment, 0), 0) << "the neighbours are untouched";
  EXPECT_EQ(now<std::int32_t>(segment, 1), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(now<std::int64_t>(segment, 5), 0);
}

TEST_P(AtomicsTest, FloatingPointNumbers) {
  Segment segment = make();
  job.run_on(GetParam().caller, [&](Pgas& pgas) -> Task<> {
    const auto number = segment.pointer<float>(1);
    EXPECT_EQ(co_await pgas.fetch_add(number, 1.5F), 0.0F);
    EXPECT_EQ(co_await pgas.fetch_add(number, 2.0F), 1.5F);
    EXPECT_EQ(co_await pgas.exchange(number, 4.0F), 3.5F);
    const auto precise = segment.pointer<double>(2);
    co_await pgas.atomic_store(precise, 0.25);
    EXPECT_EQ(co_await pgas.fetch_add(precise, 0.5), 0.25);
    EXPECT_EQ(co_await pgas.compare_exchange(precise, 0.75, -1.0), 0.75);
    EXPECT_EQ(co_await pgas.atomic_load(precise), -1.0);
  });
  EXPECT_EQ(now<float>(segment, 1), 4.0F);
  EXPECT_EQ(now<double>(segment, 2), -1.0);
}

TEST_P(AtomicsTest, ManyAtOnceLoseNothing) {
  Segment segment = make();
  const auto counter = segment.pointer<std::uint64_t>(1);
  std::vector<bool> seen(200, false);
  job.run_on(GetParam().caller, [&](Pgas& pgas) -> Task<> {
    std::vector<Value<std::uint64_t>> values;
    for (int i = 0; i < 100; ++i) {
      values.push_back(pgas.fetch_add(counter, 1));
      job.pgas(0).fetch_add(counter, 1).detach();
    }
    for (const auto& value : values) {
      const std::uint64_t before = co_await value;
      EXPECT_LT(before, 200U);
      EXPECT_FALSE(seen.at(before));
      seen.at(before) = true;
    }
  });
  job.settle();
  EXPECT_EQ(now<std::uint64_t>(segment, 1), 200U);
}

struct SendCounter final : runtime::Observer {
  void message_sent(const runtime::MessageEvent&) override { ++count; }
  int count = 0;
};

// An owner that has to serve them all first would run nothing else.
TEST(Atomics, AnOwnerIsSentABoundedNumberAtOnce) {
  constexpr int kOperations = 5000;
  PgasJob job(2, {"loopback", false});
  SendCounter counter;
  Segment segment = job.pgas(0).make_segment<std::uint64_t>(1);
  const auto word = segment.pointer<std::uint64_t>();
  job.run_on(1, [&](Pgas& pgas) -> Task<> { co_await pgas.fetch_add(word, std::uint64_t{1}); });
  job.runtime(1).set_observer(&counter);
  for (int i = 0; i < kOperations; ++i) job.pgas(1).fetch_add(word, std::uint64_t{1}).detach();
  for (int turn = 0; turn < 100; ++turn) job.runtime(1).step();
  EXPECT_GT(counter.count, 0);
  EXPECT_LE(counter.count, 1024);
  job.settle();
  EXPECT_EQ(counter.count, kOperations);
  EXPECT_EQ(segment.elements<std::uint64_t>()[0], kOperations + 1U);
  job.runtime(1).set_observer(nullptr);
}

TEST_P(AtomicsTest, MisuseIsNamed) {
  Segment segment = make();
  job.run_on(GetParam().caller, [&](Pgas& pgas) -> Task<> {
    const auto misaligned = GlobalPtr<std::uint64_t>(segment.address().moved_by(4));
    std::string why = co_await testing::pgas_error([&] { return pgas.atomic_store(misaligned, 1); });
    EXPECT_TRUE(test_support::says(why, "multiple of 8"));
    EXPECT_TRUE(test_support::says(why, "byte 4 of segment 1 of PE 0"));
    why = co_await testing::pgas_error(
        [&] { return pgas.atomic_store(segment.pointer<std::uint32_t>(16), 1); });
    EXPECT_TRUE(test_support::says(why, "byte 64 of segment 1 of PE 0"));
    why = co_await testing::pgas_error(
        [&] { return pgas.atomic_store(segment.pointer<std::uint32_t>(-1), 1); });
    EXPECT_TRUE(test_support::says(why, "byte -4 of segment 1 of PE 0"));
  });
}

TEST(AtomicWords, BitOperationsAreForIntegers) {
  EXPECT_TRUE(is_atomic(AtomicKind::kAnd, AtomicType::kInteger32));
  EXPECT_FALSE(is_atomic(AtomicKind::kXor, AtomicType::kDouble));
  EXPECT_FALSE(is_atomic(static_cast<AtomicKind>(8), AtomicType::kInteger64));
  EXPECT_FALSE(is_atomic(AtomicKind::kLoad, static_cast<AtomicType>(4)));
}

}  // namespace
}  // namespace weft::rma
