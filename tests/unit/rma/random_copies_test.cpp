// Random operations of random PEs on random segments, compared with a model that has plain vectors. Some operations leave
// their segment on purpose. Each segment lies between two guards, which must keep their bytes.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "tests/unit/rma/pgas_job.h"

namespace weft::rma {
namespace {

using testing::PgasJob;
using testing::PgasWay;

constexpr int kPes = 3;
constexpr std::size_t kGuardBytes = 64;
constexpr std::uint8_t kGuard = 0xa5;

// A segment over memory of the test, with guards around it; or of Weft.
struct ModelSegment {
  int pe = 0;
  std::unique_ptr<testing::TestMemory> memory;  // with the guards; null if it is Weft's
  Segment segment;
  std::vector<std::uint8_t> model;
};

class RandomCopies {
 public:
  RandomCopies(std::uint32_t seed, const PgasWay& way) : random_(seed), job_(kPes, way) {
    for (int i = 0; i < 6; ++i) add();
  }

  // Each operation is awaited before the next, so the model knows the order.
  void run(int num_steps) {
    for (int step = 0; step < num_steps; ++step) {
      const int pe = number(0, kPes - 1);
      job_.run_on(pe, [this](Pgas& pgas) -> Task<> { co_await one(pgas); });
      if (::testing::Test::HasFailure()) return;
      if (number(0, 40) == 0) replace();
    }
    job_.settle();
    check_all();
  }

 private:
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  ModelSegment& any() {
    return *segments_[static_cast<std::size_t>(number(0, static_cast<int>(segments_.size()) - 1))];
  }

  void add() {
    auto made = std::make_unique<ModelSegment>();
    made->pe = number(0, kPes - 1);
    const auto size = static_cast<std::size_t>(number(1, 3000));
    const memory::Place place =
        number(0, 1) == 0 ? memory::Place{} : memory::Place{memory::Kind::kEmulated, 0};
    if (number(0, 1) == 0) {
      made->memory =
          std::make_unique<testing::TestMemory>(job_.memory(made->pe), place, size + 2 * kGuardBytes);
      std::fill_n(testing::view(job_.memory(made->pe), made->memory->buffer()), size + 2 * kGuardBytes,
                  kGuard);
      made->segment = job_.pgas(made->pe).make_segment_at(
          static_cast<std::byte*>(made->memory->buffer().data) + kGuardBytes, size);
    } else {
      made->segment = job_.pgas(made->pe).make_segment(size, place);
    }
    const auto bytes = job_.bytes(made->pe, made->segment);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(number(0, 255));
    made->model.assign(bytes.begin(), bytes.end());
    segments_.push_back(std::move(made));
  }

  // Frees one segment and makes another one. Pointers into the freed one are errors.
  void replace() {
    const auto which = static_cast<std::size_t>(number(0, static_cast<int>(segments_.size()) - 1));
    const std::unique_ptr<ModelSegment> old = std::move(segments_[which]);
    check(*old);
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(which));
    const auto pointer = old->segment.pointer<std::uint8_t>();
    Future<> released = std::move(old->segment).release();
    job_.run_on(number(0, kPes - 1), [&](Pgas& pgas) -> Task<> {
      const std::string why =
          co_await testing::pgas_error([&] { return pgas.put(std::uint8_t{1}, pointer); });
      EXPECT_TRUE(test_support::says(why, "has been freed"));
    });
    ASSERT_EQ(job_.run_until([&] { return released.is_ready(); }), "");
    if (old->memory != nullptr) check_guards(*old);
    add();
  }

  Task<> one(Pgas& pgas) {
    ModelSegment& from = any();
    ModelSegment& to = any();
    const int what = number(0, 9);
    if (what < 5) {
      co_await copy(pgas, from, to);
    } else if (what < 7) {
      co_await put_and_get(pgas, to);
    } else if (what < 9) {
      co_await indexed(pgas, from, to);
    } else {
      co_await atomic(pgas, to);
    }
  }

  // A range that leaves the segment now and then.
  std::pair<std::size_t, std::size_t> range(const ModelSegment& segment, std::size_t size) {
    const auto room = static_cast<int>(segment.model.size());
    const int begin = number(0, number(0, 9) == 0 ? room + 100 : std::max(0, room - static_cast<int>(size)));
    return {static_cast<std::size_t>(begin), static_cast<std::size_t>(begin) + size};
  }

  Task<> copy(Pgas& pgas, ModelSegment& from, ModelSegment& to) {
    const auto size = static_cast<std::size_t>(number(0, static_cast<int>(from.model.size())));
    const auto [source, source_end] = range(from, size);
    const auto [target, target_end] = range(to, size);
    const bool overlaps = &from == &to && source < target_end && target < source_end;
    const bool fits = source_end <= from.model.size() && target_end <= to.model.size();
    const auto source_at = from.segment.pointer<std::uint8_t>(static_cast<std::ptrdiff_t>(source));
    const auto target_at = to.segment.pointer<std::uint8_t>(static_cast<std::ptrdiff_t>(target));
    const std::string why =
        co_await testing::pgas_error([&] { return pgas.copy(source_at, target_at, size); });
    EXPECT_EQ(why == "", fits && !overlaps) << why;
    if (why == "")
      std::copy_n(from.model.begin() + static_cast<std::ptrdiff_t>(source), size,
                  to.model.begin() + static_cast<std::ptrdiff_t>(target));
    check(to);
  }

  Task<> put_and_get(Pgas& pgas, ModelSegment& to) {
    const auto [begin, end] = range(to, sizeof(std::uint32_t));
    const auto at =
        GlobalPtr<std::uint32_t>(to.segment.address().moved_by(static_cast<std::ptrdiff_t>(begin)));
    const auto value = static_cast<std::uint32_t>(random_());
    const std::string why = co_await testing::pgas_error([&] { return pgas.put(value, at); });
    EXPECT_EQ(why == "", end <= to.model.size()) << why;
    if (why == "") {
      std::memcpy(to.model.data() + begin, &value, sizeof value);
      const std::uint32_t got = co_await pgas.get(at);
      EXPECT_EQ(got, value);
    }
    check(to);
  }

  Task<> indexed(Pgas& pgas, ModelSegment& from, ModelSegment& to) {
    if (&from == &to) co_return;
    const auto block = static_cast<std::size_t>(number(0, 20));
    std::vector<std::ptrdiff_t> sources;
    std::vector<std::ptrdiff_t> targets;
    bool fits = true;
    const int num_blocks = number(0, 15);
    for (int i = 0; i < num_blocks; ++i) {
      const auto [source, source_end] = range(from, block);
      // Targets follow one another, because they must not overlap.
      const auto target = static_cast<std::size_t>(i) * (block + 3);
      sources.push_back(static_cast<std::ptrdiff_t>(source));
      targets.push_back(static_cast<std::ptrdiff_t>(target));
      fits &= block == 0 || (source_end <= from.model.size() && target + block <= to.model.size());
    }
    const auto source_at = from.segment.pointer<const std::uint8_t>();
    const auto target_at = to.segment.pointer<std::uint8_t>();
    const std::string why = co_await testing::pgas_error(
        [&] { return pgas.copy_indexed<std::uint8_t>(source_at, sources, target_at, targets, block); });
    EXPECT_EQ(why == "", fits) << why;
    for (std::size_t i = 0; i < sources.size() && why == ""; ++i) {
      std::copy_n(from.model.begin() + sources[i], block, to.model.begin() + targets[i]);
    }
    check(to);
  }

  Task<> atomic(Pgas& pgas, ModelSegment& to) {
    const auto word = static_cast<std::size_t>(number(0, static_cast<int>(to.model.size()) / 4 + 1)) * 4;
    const auto at =
        GlobalPtr<std::uint32_t>(to.segment.address().moved_by(static_cast<std::ptrdiff_t>(word)));
    const bool fits = word + 4 <= to.model.size();
    const auto value = static_cast<std::uint32_t>(random_());
    std::string why;
    std::uint32_t before = 0;
    try {
      Value<std::uint32_t> result = pgas.fetch_add(at, value);
      before = co_await result;
    } catch (const base::Error& error) {
      why = error.what();
    }
    EXPECT_EQ(why == "", fits) << why;
    if (why == "") {
      std::uint32_t expected = 0;
      std::memcpy(&expected, to.model.data() + word, sizeof expected);
      EXPECT_EQ(before, expected);
      expected += value;
      std::memcpy(to.model.data() + word, &expected, sizeof expected);
    }
    check(to);
  }

  void check(const ModelSegment& segment) {
    const auto bytes = job_.bytes(segment.pe, segment.segment);
    EXPECT_TRUE(std::ranges::equal(bytes, segment.model)) << describe(segment.segment.address());
    if (segment.memory != nullptr) check_guards(segment);
  }
  void check_guards(const ModelSegment& segment) {
    const std::vector<std::uint8_t> all = segment.memory->now();
    for (std::size_t i = 0; i < kGuardBytes; ++i) {
      EXPECT_EQ(all[i], kGuard);
      EXPECT_EQ(all[all.size() - 1 - i], kGuard);
    }
  }
  void check_all() {
    for (const auto& segment : segments_) check(*segment);
  }

  std::mt19937 random_;
  PgasJob job_;
  std::vector<std::unique_ptr<ModelSegment>> segments_;
};

// WEFT_TEST_SEED sets another one.
std::uint32_t pgas_seed() {
  const char* const given = std::getenv("WEFT_TEST_SEED");
  return given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 1;
}

struct RandomCopiesTest : ::testing::TestWithParam<PgasWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, RandomCopiesTest,
                         ::testing::Values(PgasWay{"loopback", true}, PgasWay{"loopback", false},
                                           PgasWay{"ucx", true}, PgasWay{"ucx", false}),
                         [](const auto& info) {
                           return std::string(info.param.machine) + (info.param.maps ? "" : "_unmapped");
                         });

TEST_P(RandomCopiesTest, AgreeWithAModel) {
  const std::uint32_t first = pgas_seed();
  for (std::uint32_t seed = first; seed < first + 4 && !HasFailure(); ++seed) {
    SCOPED_TRACE("WEFT_TEST_SEED=" + std::to_string(seed));
    std::printf("seed: WEFT_TEST_SEED=%u\n", seed);
    RandomCopies(seed, GetParam()).run(150);
  }
}

}  // namespace
}  // namespace weft::rma
