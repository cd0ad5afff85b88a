// Combined elements, beside references that work in other ways: conversions by tables and by neighbours, integers by wide numbers.
#include "memory/kinds/software/software_reduction.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace weft::memory {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
std::vector<T> reduce(ElementType type, Combination combination, const std::vector<std::vector<T>>& sources) {
  std::vector<T> out(sources.front().size());
  DeviceReduction reduction;
  for (const std::vector<T>& source : sources)
    reduction.sources.add(reinterpret_cast<const std::byte*>(source.data()));
  reduction.out = reinterpret_cast<std::byte*>(out.data());
  reduction.num_elements = out.size();
  reduction.type = type;
  reduction.combination = combination;
  reduce_on_cpu(reduction);
  return out;
}

template <class T>
T reduce_pair(ElementType type, Combination combination, T left, T right) {
  return reduce<T>(type, combination, {{left}, {right}}).front();
}

// The value of a float16, by its definition.
double value_of_float16(std::uint16_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  if (exponent == 0x1f) return fraction != 0 ? std::nan("") : sign * kInfinity;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}
double value_of_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

bool is_float16_nan(std::uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }
bool is_bfloat16_nan(std::uint16_t bits) { return (bits & 0x7fff) > 0x7f80; }

// The nearest one to a positive value, of all that are finite and of the first that is too large; of two the even one.
std::uint16_t nearest(double value, double (*value_of)(std::uint16_t), std::uint16_t infinity) {
  std::uint32_t low = 0;
  std::uint32_t high = infinity;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(static_cast<std::uint16_t>(middle)) <= value ? low : high) = middle;
  }
  const double below = value_of(static_cast<std::uint16_t>(low));
  // Infinity counts as the number that would follow.
  const double above = high == infinity ? below + (below - value_of(static_cast<std::uint16_t>(low - 1)))
                                        : value_of(static_cast<std::uint16_t>(high));
  if (value - below == above - value) return static_cast<std::uint16_t>(low % 2 == 0 ? low : high);
  return static_cast<std::uint16_t>(value - below < above - value ? low : high);
}

struct TwoByteType {
  const char* name;
  ElementType type;
  double (*value_of)(std::uint16_t);
  bool (*is_nan)(std::uint16_t);
  std::uint16_t infinity;
  std::uint16_t zero_and_one[2];
};
constexpr TwoByteType kTwoByteTypes[] = {
    {"float16", ElementType::kFloat16, &value_of_float16, &is_float16_nan, 0x7c00, {0, 0x3c00}},
    {"bfloat16", ElementType::kBfloat16, &value_of_bfloat16, &is_bfloat16_nan, 0x7f80, {0, 0x3f80}},
};

class TwoByteNumbers : public ::testing::TestWithParam<TwoByteType> {
 protected:
  std::uint16_t combine(Combination combination, std::uint16_t left, std::uint16_t right) const {
    return reduce_pair(GetParam().type, combination, left, right);
  }
};
INSTANTIATE_TEST_SUITE_P(Types, TwoByteNumbers, ::testing::ValuesIn(kTwoByteTypes),
                         [](const auto& info) { return std::string(info.param.name); });

// x * 1 converts there and back.
TEST_P(TwoByteNumbers, EachPatternConvertsToItself) {
  for (std::uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const std::uint16_t result = combine(Combination::kProduct, bits, GetParam().zero_and_one[1]);
    if (GetParam().is_nan(bits)) {
      ASSERT_TRUE(GetParam().is_nan(result)) << std::hex << pattern;
    } else {
      ASSERT_EQ(result, bits) << std::hex << pattern;
    }
  }
}

// Sums and products of finite numbers. The reference rounds what float32 gives, as devices do:
// a product of two of these is exact there, and a sum may be rounded twice.
TEST_P(TwoByteNumbers, RoundToTheNearestAndOfTwoToTheEven) {
  std::mt19937 random(1);
  const TwoByteType& type = GetParam();
  const auto expect = [&](Combination combination, std::uint16_t left, std::uint16_t right) {
    const auto a = static_cast<float>(type.value_of(left));
    const auto b = static_cast<float>(type.value_of(right));
    const float exact = combination == Combination::kSum ? a + b : a * b;
    const std::uint16_t result = combine(combination, left, right);
    if (std::isinf(exact)) {
      ASSERT_EQ(result & 0x7fff, type.infinity);
    } else {
      ASSERT_EQ(result & 0x7fff, nearest(std::fabs(exact), type.value_of, type.infinity))
          << std::hex << left << " " << right << " " << static_cast<int>(combination);
    }
    ASSERT_EQ((result & 0x8000) != 0, std::signbit(exact)) << std::hex << left << " " << right;
  };
  const auto finite = [&] {
    for (;;) {
      const auto bits = static_cast<std::uint16_t>(random());
      if ((bits & 0x7fff) < type.infinity) return bits;
    }
  };
  for (int i = 0; i < 200'000; ++i) {
    const std::uint16_t left = finite();
    expect(Combination::kProduct, left, finite());
    expect(Combination::kSum, left, finite());
    // Neighbours in size, so that sums are seldom one of the two.
    const auto near = static_cast<std::uint16_t>(left ^ (random() & 0x87ff));
    if ((near & 0x7fff) < type.infinity) expect(Combination::kSum, left, near);
  }
}

TEST(Float16Numbers, TiesAndLimits) {
  const auto sum = [](std::uint16_t left, std::uint16_t right) {
    return reduce_pair(ElementType::kFloat16, Combination::kSum, left, right);
  };
  const auto product = [](std::uint16_t left, std::uint16_t right) {
    return reduce_pair(ElementType::kFloat16, Combination::kProduct, left, right);
  };
  EXPECT_EQ(sum(0x6800, 0x3c00), 0x6800) << "2048 + 1 lies between 2048 and 2050: even is 2048";
  EXPECT_EQ(sum(0x6801, 0x3c00), 0x6802) << "2050 + 1 lies between 2050 and 2052: even is 2052";
  EXPECT_EQ(sum(0x7bff, 0x7bff), 0x7c00) << "65504 + 65504";
  EXPECT_EQ(sum(0x7bff, 0x4b00), 0x7bff) << "65504 + 14 is below 65520";
  EXPECT_EQ(sum(0x7bff, 0x4c00), 0x7c00) << "65504 + 16 is the tie, and infinity is the even one";
  EXPECT_EQ(sum(0xfbff, 0xcc00), 0xfc00);
  EXPECT_EQ(sum(0x0001, 0x0001), 0x0002) << "subnormal numbers";
  EXPECT_EQ(sum(0x03ff, 0x0001), 0x0400) << "the first normal number";
  EXPECT_EQ(product(0x0001, 0x3800), 0x0000) << "half of the smallest: even is 0";
  EXPECT_EQ(product(0x0003, 0x3800), 0x0002) << "1.5 steps: even is 2";
  EXPECT_EQ(product(0x8001, 0x3800), 0x8000) << "the sign of zero stays";
  EXPECT_EQ(sum(0x8000, 0x8000), 0x8000);
  EXPECT_EQ(sum(0x7c00, 0xfc00) & 0x7fff, 0x7fff) << "infinity - infinity";
}

// 1 + three halves of a step: rounded once at the end it is a whole step more than rounded on the way.
TEST(TwoByteNumbersOfSeveral, AreRoundedOnce) {
  const std::vector<std::vector<std::uint16_t>> halves = {{0x6800}, {0x3c00}, {0x3c00}, {0x3c00}};
  EXPECT_EQ(reduce<std::uint16_t>(ElementType::kFloat16, Combination::kSum, halves).front(), 0x6802)
      << "2048 + 1 + 1 + 1 = 2051, between 2050 and 2052";
  // bfloat16: 256 + 1 + 1 + 1 in steps of 2.
  const std::vector<std::vector<std::uint16_t>> steps = {{0x4380}, {0x3f80}, {0x3f80}, {0x3f80}};
  EXPECT_EQ(reduce<std::uint16_t>(ElementType::kBfloat16, Combination::kSum, steps).front(), 0x4382);
}

TEST_P(TwoByteNumbers, ANanIsTheResult) {
  const TwoByteType& type = GetParam();
  const auto nan = static_cast<std::uint16_t>(type.infinity + 1);
  const std::uint16_t one = type.zero_and_one[1];
  for (const Combination how :
       {Combination::kSum, Combination::kMin, Combination::kMax, Combination::kProduct}) {
    EXPECT_TRUE(type.is_nan(combine(how, nan, one)));
    EXPECT_TRUE(type.is_nan(combine(how, one, nan)));
    EXPECT_TRUE(type.is_nan(combine(how, static_cast<std::uint16_t>(nan | 0x8000), type.infinity)));
  }
}

TEST_P(TwoByteNumbers, MinimumAndMaximumAreOneOfThem) {
  const TwoByteType& type = GetParam();
  std::mt19937 random(2);
  for (int i = 0; i < 50'000; ++i) {
    const auto left = static_cast<std::uint16_t>(random());
    const auto right = static_cast<std::uint16_t>(random());
    if (type.is_nan(left) || type.is_nan(right)) continue;
    const bool left_is_less = type.value_of(left) < type.value_of(right);
    const bool right_is_less = type.value_of(right) < type.value_of(left);
    if (left_is_less == right_is_less) continue;
    EXPECT_EQ(combine(Combination::kMin, left, right), left_is_less ? left : right);
    EXPECT_EQ(combine(Combination::kMax, left, right), left_is_less ? right : left);
  }
}

template <class T>
void expect_integers(ElementType type) {
  using Unsigned = std::make_unsigned_t<T>;
  std::mt19937_64 random(3);
  for (int i = 0; i < 10'000; ++i) {
    const auto a = static_cast<T>(random());
    const auto b = static_cast<T>(random() >> (i % 64));
    const auto wrapped = [](Unsigned bits) { return static_cast<T>(bits); };
    EXPECT_EQ(reduce_pair(type, Combination::kSum, a, b),
              wrapped(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
    EXPECT_EQ(reduce_pair(type, Combination::kProduct, a, b),
              wrapped(static_cast<Unsigned>(a) * static_cast<Unsigned>(b)));
    EXPECT_EQ(reduce_pair(type, Combination::kMin, a, b), std::min(a, b));
    EXPECT_EQ(reduce_pair(type, Combination::kMax, a, b), std::max(a, b));
  }
  constexpr T kMost = std::numeric_limits<T>::max();
  EXPECT_EQ(reduce_pair<T>(type, Combination::kSum, kMost, 1), std::numeric_limits<T>::min());
}

TEST(SoftwareReduction, IntegersWrap) {
  expect_integers<std::int32_t>(ElementType::kInt32);
  expect_integers<std::int64_t>(ElementType::kInt64);
}

template <class T>
void expect_from_left(ElementType type) {
  std::mt19937 random(4);
  std::normal_distribution<T> normal;
  std::vector<std::vector<T>> sources(5, std::vector<T>(1000));
  for (auto& source : sources) {
    for (T& value : source) value = normal(random) * std::ldexp(T(1), static_cast<int>(random() % 40));
  }
  const std::vector<T> sum = reduce(type, Combination::kSum, sources);
  const std::vector<T> product = reduce(type, Combination::kProduct, sources);
  const std::vector<T> least = reduce(type, Combination::kMin, sources);
  const std::vector<T> most = reduce(type, Combination::kMax, sources);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const auto value = [&](std::size_t source) { return sources[source][i]; };
    EXPECT_EQ(sum[i], (((value(0) + value(1)) + value(2)) + value(3)) + value(4));
    EXPECT_EQ(product[i], (((value(0) * value(1)) * value(2)) * value(3)) * value(4));
    EXPECT_EQ(least[i], std::min({value(0), value(1), value(2), value(3), value(4)}));
    EXPECT_EQ(most[i], std::max({value(0), value(1), value(2), value(3), value(4)}));
  }
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (const Combination how : {Combination::kMin, Combination::kMax}) {
    EXPECT_TRUE(std::isnan(reduce_pair<T>(type, how, nan, 1)));
    EXPECT_TRUE(std::isnan(reduce_pair<T>(type, how, 1, nan)));
  }
}

TEST(SoftwareReduction, FloatsAreCombinedFromLeftToRight) {
  expect_from_left<float>(ElementType::kFloat32);
  expect_from_left<double>(ElementType::kFloat64);
}

TEST(SoftwareReduction, TheOutputMayBeASource) {
  std::vector<std::int32_t> first = {1, 2, 3};
  const std::vector<std::int32_t> second = {10, 20, 30};
  DeviceReduction reduction;
  reduction.sources.add(reinterpret_cast<const std::byte*>(second.data()));
  reduction.sources.add(reinterpret_cast<const std::byte*>(first.data()));
  reduction.out = reinterpret_cast<std::byte*>(first.data());
  reduction.num_elements = 3;
  reduction.type = ElementType::kInt32;
  reduce_on_cpu(reduction);
  EXPECT_EQ(first, (std::vector<std::int32_t>{11, 22, 33}));
}

}  // namespace
}  // namespace weft::memory
