#include "weft/chare/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using argument_detail::kOutOfBandBytes;
using argument_detail::kOutOfBandFlag;
using argument_detail::kPaddingShift;
using argument_detail::View;

struct alignas(32) Wide {
  double value = 0;
};
struct alignas(256) Widest {
  double value = 0;
};
bool operator==(const Wide& a, const Wide& b) { return a.value == b.value; }
bool operator==(const Widest& a, const Widest& b) { return a.value == b.value; }

template <class T>
std::vector<T> pattern(std::size_t size, int seed) {
  std::vector<T> values;
  for (std::size_t i = 0; i < size; ++i) {
    if constexpr (std::is_arithmetic_v<T>) {
      values.push_back(static_cast<T>(i * 7 + static_cast<std::size_t>(seed)));
    } else {
      values.push_back({static_cast<double>(i * 7 + static_cast<std::size_t>(seed))});
    }
  }
  return values;
}

template <class T>
bool is_pattern(std::span<const T> values, std::size_t size, int seed) {
  return values.size() == size && argument_detail::is_aligned(values.data(), alignof(T)) &&
         std::ranges::equal(values, pattern<T>(size, seed));
}

struct Viewer : Chare<Viewer> {
  template <class T>
  bool check(std::int8_t, std::span<const T> values, std::uint64_t size, int seed) {
    return is_pattern(values, size, seed);
  }
  template <class T>
  Task<bool> check_late(std::int8_t, std::span<const T> values, std::uint64_t size, int seed) {
    for (int i = 0; i < 3; ++i)
      co_await runtime().sleep(0);  // other messages use the memory of this one if it is free
    co_return is_pattern(values, size, seed);
  }
  Task<bool> two(std::span<const double> first, std::string name, const std::span<const float>& second) {
    co_await runtime().sleep(0);
    co_return is_pattern(first, first.size(), 1) && name == "two" && is_pattern(second, second.size(), 2);
  }
  void post(std::int8_t, std::span<const double> values, weft::ReceiveBuffer<int>& numbers) {
    was_right = is_pattern(values, values.size(), 3);
    room.resize(numbers.size());
    numbers.into(room);
  }
  Task<bool> posted(std::int8_t, std::span<const double> values, Payload<int> numbers) {
    co_await runtime().sleep(0);
    co_return was_right&& is_pattern(values, values.size(), 3) && numbers.data() == room.data();
  }
  using PostEntryMethods = weft::PostEntryMethods<Post<&Viewer::posted, &Viewer::post>>;
  void keep_sum(std::span<const double> values) {
    sum = std::accumulate(values.begin(), values.end(), 0.0);
    if (--missing == 0) summed.set();
  }
  void contribute_vector() {
    this->contribute(std::vector<double>{1, 2, 3}, Reducer::kSum,
                     this->proxy()[0].target<&Viewer::keep_sum>());
  }
  Task<double> wait_for_sum() {
    co_await summed;
    co_return sum;
  }

  bool was_right = false;
  std::vector<int> room;
  double sum = 0;
  int missing = 1;
  Future<> summed{runtime()};
};

struct ViewTest : ::testing::TestWithParam<int> {
  void run(const std::function<Task<>(Runtime&)>& main) {
    testing::InProcessJob job(GetParam());
    EXPECT_EQ(job.run(main), "");
  }
};

// These are no coroutines: g++ 12 does not align what a coroutine's frame holds beyond the alignment of new.
template <class T>
Future<bool> call_with_array(Array<Viewer> viewers, int element, int seed) {
  const std::vector<T> some = pattern<T>(3, seed);
  const std::array<T, 3> few{some[0], some[1], some[2]};
  return viewers[element].template call<&Viewer::check<T>>(std::int8_t{1}, few, std::uint64_t{3}, seed);
}
template <class T>
void clear(std::vector<T>& values) {
  std::ranges::fill(values, T{});
}

// Calls with `size` elements from every sort of container, each overwritten after the call.
template <class T>
Task<> expect_values(Array<Viewer> viewers, std::size_t size, int seed) {
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t count = size;
    auto proxy = viewers[i];
    std::vector<T> values = pattern<T>(size, seed);
    std::vector<Future<bool>> answers;
    answers.push_back(proxy.template call<&Viewer::check<T>>(std::int8_t{1}, values, count, seed));
    answers.push_back(
        proxy.template call<&Viewer::check_late<T>>(std::int8_t{1}, std::span<T>(values), count, seed));
    answers.push_back(proxy.template call<&Viewer::check_late<T>>(std::int8_t{1}, values, count, seed));
    answers.push_back(
        proxy.template call<&Viewer::check_late<T>>(std::int8_t{1}, pattern<T>(size, seed), count, seed));
    answers.push_back(call_with_array<T>(viewers, i, seed));
    clear(values);
    for (Future<bool>& answer : answers) {
      const bool is_right = co_await answer;
      EXPECT_TRUE(is_right) << size << " elements of " << sizeof(T) << " bytes to element " << i;
    }
  }
  std::vector<T> values = pattern<T>(size, seed);
  Future<std::vector<bool>> all =
      viewers.template call<&Viewer::check_late<T>>(std::int8_t{1}, values, std::uint64_t{size}, seed);
  clear(values);
  const std::vector<bool> right = co_await all;
  EXPECT_EQ(right, std::vector<bool>(3, true)) << size;
}

TEST_P(ViewTest, ElementsAreTheCallsOwnAndAligned) {
  run([](Runtime& runtime) -> Task<> {
    auto viewers = Array<Viewer>::create(runtime, {3});
    std::mt19937 random(7);
    for (int seed = 0; seed < 4; ++seed) {
      for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{100}, kOutOfBandBytes}) {
        const std::size_t size_bytes = limit + random() % 3 * (limit / 2);
        co_await expect_values<std::int8_t>(viewers, size_bytes, seed);
        co_await expect_values<double>(viewers, size_bytes / sizeof(double), seed);
        co_await expect_values<Wide>(viewers, size_bytes / sizeof(Wide), seed);
        co_await expect_values<Widest>(viewers, size_bytes / sizeof(Widest), seed);
      }
      co_await expect_values<double>(viewers, kOutOfBandBytes / sizeof(double) - 1, seed);
    }
  });
}

TEST_P(ViewTest, SeveralViewsOfOneCall) {
  run([](Runtime& runtime) -> Task<> {
    auto viewers = Array<Viewer>::create(runtime, {3});
    for (const std::size_t first : {0, 5, 10'000}) {
      for (const std::size_t second : {0, 5, 10'000}) {
        const std::vector<double> values = pattern<double>(first, 1);
        const std::vector<float> others = pattern<float>(second, 2);
        for (int i = 0; i < 3; ++i) {
          const bool is_right = co_await viewers[i].call<&Viewer::two>(values, "two", others);
          EXPECT_TRUE(is_right) << first << ' ' << second;
        }
      }
    }
  });
}

TEST_P(ViewTest, TogetherWithAPayloadWithAPostEntryMethod) {
  run([](Runtime& runtime) -> Task<> {
    auto viewers = Array<Viewer>::create(runtime, {3});
    const std::vector<int> numbers(10'000, 42);
    for (const std::size_t size : {0, 5, 10'000}) {
      for (int i = 0; i < 3; ++i) {
        const bool is_right = co_await viewers[i].call<&Viewer::posted>(
            std::int8_t{1}, pattern<double>(size, 3), nocopy(numbers));
        EXPECT_TRUE(is_right) << size;
      }
    }
  });
}

TEST_P(ViewTest, TheResultOfAReduction) {
  run([](Runtime& runtime) -> Task<> {
    auto viewers = Array<Viewer>::create(runtime, {3});
    viewers.send<&Viewer::contribute_vector>();
    const double sum = co_await viewers[0].call<&Viewer::wait_for_sum>();
    EXPECT_EQ(sum, 18);
  });
}

INSTANTIATE_TEST_SUITE_P(NumPes, ViewTest, ::testing::Values(1, 2, 3));

TEST(ViewStorage, IsNoVectorAtTheReceiver) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([&job](Runtime& runtime) -> Task<> {
    auto viewers = Array<Viewer>::create(runtime, {2});
    const bool is_right = co_await viewers[1].call<&Viewer::check<double>>(
        std::int8_t{1}, pattern<double>(10'000, 1), std::uint64_t{10'000}, 1);
    EXPECT_TRUE(is_right);
    EXPECT_EQ(argument_detail::vector_pool(job.runtime(1)).kept_bytes(), 0U);
  }),
            "");
}

// --- What is packed

struct PackedView : ::testing::Test {
  // `size` doubles behind `before` bytes, as a call packs them.
  void pack(std::size_t before, std::size_t size) {
    values = pattern<double>(size, 1);
    const std::size_t size_bytes = before + sizeof(std::uint64_t) + 7 + size * sizeof(double);
    Pup p = Pup::packer(bytes.data(), size_bytes);
    for (std::size_t i = 0; i < before; ++i) p | std::uint8_t{1};
    argument_detail::pack_padded(p, size, values.data(), size * sizeof(double), 7);
    EXPECT_EQ(p.remaining_bytes(), 0U);
    begin = before;
    end = size_bytes;
  }
  Pup unpacker() { return Pup::unpacker(bytes.data() + begin, end - begin); }
  std::string failure() {
    Pup p = unpacker();
    View<double> view;
    try {
      p | view;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), base::StatusCode::kCorrupt);
      return error.what();
    }
    return "";
  }
  void set_count(std::uint64_t count) { std::memcpy(bytes.data() + begin, &count, sizeof count); }

  alignas(64) std::array<std::byte, 1024> bytes{};
  std::vector<double> values;
  std::size_t begin = 0;
  std::size_t end = 0;
};

TEST_F(PackedView, IsViewedWhereItLies) {
  for (std::size_t before = 0; before < 9; ++before) {
    pack(before, 10);
    Pup p = unpacker();
    View<double> view;
    p | view;
    EXPECT_EQ(p.remaining_bytes(), 0U);
    EXPECT_TRUE(std::ranges::equal(view.span(), values));
    EXPECT_TRUE(view.own().empty());
    EXPECT_GE(reinterpret_cast<const std::byte*>(view.span().data()), bytes.data());
    EXPECT_LT(reinterpret_cast<const std::byte*>(view.span().data()), bytes.data() + bytes.size());
    View<double> moved = std::move(view);
    EXPECT_TRUE(std::ranges::equal(moved.span(), values));
  }
}

TEST_F(PackedView, IsCopiedWhereItIsNotAligned) {
  const std::vector<double> some = pattern<double>(10, 1);
  const std::vector<std::byte> packed = base::pack(some);
  std::ranges::copy(packed, bytes.begin() + 3);
  begin = 3;
  end = 3 + packed.size();
  Pup p = unpacker();
  View<double> view;
  p | view;
  EXPECT_EQ(view.own(), some);
  EXPECT_TRUE(std::ranges::equal(view.span(), some));
}

TEST_F(PackedView, OfDamagedBytesIsRefused) {
  pack(0, 10);
  EXPECT_EQ(failure(), "");
  set_count(10);  // without padding the bytes begin earlier
  EXPECT_EQ(failure(), "");
  set_count(1000);
  EXPECT_NE(failure(), "");
  set_count((std::uint64_t{1} << 53) + 10);  // 8 times that is 80 again
  EXPECT_NE(failure(), "");
  set_count(10 | kOutOfBandFlag);
  EXPECT_NE(failure().find("padding"), std::string::npos);
  set_count(10 | std::uint64_t{9} << kPaddingShift);
  EXPECT_NE(failure().find("padding"), std::string::npos);
  set_count(10 | std::uint64_t{8} << kPaddingShift);
  EXPECT_EQ(failure(), "");
  set_count(11 | std::uint64_t{8} << kPaddingShift);
  EXPECT_NE(failure(), "");
  end = 3;
  EXPECT_NE(failure(), "");
}

TEST(BuffersOfArguments, AreNamedOnce) {
  using argument_detail::expect_distinct;
  using argument_detail::kNoBuffer;
  std::vector<runtime::ReceiveBuffer> receive_buffers(3);
  EXPECT_NO_THROW(expect_distinct(std::array{kNoBuffer, 2U, 0U, kNoBuffer}, receive_buffers));
  EXPECT_THROW(expect_distinct(std::array{1U, kNoBuffer, 1U}, receive_buffers), Error);
  receive_buffers[1].into = runtime::Attachment(memory::Buffer{});
  EXPECT_THROW(expect_distinct(std::array{kNoBuffer, 1U}, receive_buffers), Error);
}

TEST(BuffersOfArguments, AreInHostMemory) {
  std::vector<runtime::ReceiveBuffer> receive_buffers(1);
  receive_buffers[0].size_bytes = 80;
  receive_buffers[0].place = {memory::Kind::kEmulated, 0};
  std::vector<std::byte> bytes = base::pack(std::uint64_t{10} | kOutOfBandFlag);
  bytes.resize(bytes.size() + sizeof(std::uint32_t));
  Pup p = Pup::unpacker(bytes.data(), bytes.size());
  EXPECT_THROW(argument_detail::read_block(p, receive_buffers, 8), Error);
}

}  // namespace
}  // namespace weft::chare
