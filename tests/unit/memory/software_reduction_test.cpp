// Reductions by the CPU, in cases that arithmetic of wider types gets wrong.
#include "memory/kinds/software/software_reduction.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

template <class T>
T reduce(ElementType type, Combination combination, const std::vector<T>& values) {
  T out{};
  DeviceReduction reduction;
  for (const T& value : values) reduction.sources.add(reinterpret_cast<const std::byte*>(&value));
  reduction.out = reinterpret_cast<std::byte*>(&out);
  reduction.num_elements = 1;
  reduction.type = type;
  reduction.combination = combination;
  reduce_on_cpu(reduction);
  return out;
}

using Bits = std::vector<std::uint16_t>;

TEST(SoftwareReductionTest, Float16) {
  const auto sum = [](const Bits& bits) { return reduce(ElementType::kFloat16, Combination::kSum, bits); };
  EXPECT_EQ(sum({0x3c00, 0x4000}), 0x4200) << "1 + 2";
  EXPECT_EQ(sum({0x3c00, 0xbc00}), 0) << "1 - 1";
  EXPECT_EQ(sum({0x8000, 0x8000}), 0x8000) << "-0 - 0";
  EXPECT_EQ(sum({0x0001, 0x0001}), 0x0002) << "subnormal numbers";
  EXPECT_EQ(sum({0x03ff, 0x0001}), 0x0400) << "the first number that is not";
  EXPECT_EQ(sum({0x6800, 0x3c00}), 0x6800) << "2048 + 1, to the even one";
  EXPECT_EQ(sum({0x6800, 0x3c00, 0x3c00}), 0x6801) << "rounded once";
  EXPECT_EQ(sum({0x7bff, 0x7bff}), 0x7c00);
}

TEST(SoftwareReductionTest, Bfloat16) {
  const auto sum = [](const Bits& bits) { return reduce(ElementType::kBfloat16, Combination::kSum, bits); };
  EXPECT_EQ(sum({0x3f80, 0x4000}), 0x4040) << "1 + 2";
  EXPECT_EQ(sum({0x3f80, 0xbf80}), 0) << "1 - 1";
  EXPECT_EQ(sum({0x4380, 0x3f80}), 0x4380) << "256 + 1, to the even one";
  EXPECT_EQ(sum({0x4380, 0x3f80, 0x3f80}), 0x4381) << "rounded once";
  EXPECT_EQ(sum({0x7f7f, 0x7f7f}), 0x7f80);
}

TEST(SoftwareReductionTest, ANanIsTheMinimumAndTheMaximum) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Combination combination : {Combination::kMin, Combination::kMax}) {
    for (const std::vector<double>& values :
         {std::vector<double>{nan, 1, 2}, std::vector<double>{1, nan, 2}, std::vector<double>{1, 2, nan}}) {
      const double result = reduce(ElementType::kFloat64, combination, values);
      EXPECT_NE(result, result);
    }
  }
}

TEST(SoftwareReductionTest, IntegersWrap) {
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(reduce<std::int32_t>(ElementType::kInt32, Combination::kSum, {kMax, 1}), -kMax - 1);
  EXPECT_EQ(reduce<std::int64_t>(ElementType::kInt64, Combination::kProduct, {kMax64, 2}), -2);
}

}  // namespace
}  // namespace weft::memory
