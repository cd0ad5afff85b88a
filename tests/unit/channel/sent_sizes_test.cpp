#include "models/channel/unreceived/sent_sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace weft::channel {
namespace {

std::vector<std::uint32_t> numbers_of(const std::vector<SentSize>& sizes) {
  std::vector<std::uint32_t> numbers;
  for (const SentSize& one : sizes) numbers.push_back(one.number);
  return numbers;
}

TEST(SentSizes, WhatThePeerHasReportedIsForgotten) {
  SentSizes sizes;
  for (std::uint32_t number = 0; number < 10; number += 2) sizes.push(number, number * 100);
  sizes.forget_before(3);
  EXPECT_EQ(numbers_of(sizes.all()), (std::vector<std::uint32_t>{4, 6, 8}));
  EXPECT_EQ(sizes.all().front().size_bytes, 400U);
  sizes.forget_before(3);  // a report that says nothing new
  EXPECT_EQ(numbers_of(sizes.all()), (std::vector<std::uint32_t>{4, 6, 8}));
  sizes.push(9, 900);
  sizes.forget_before(100);
  EXPECT_TRUE(sizes.all().empty());
  sizes.push(100, 1);
  EXPECT_EQ(numbers_of(sizes.all()), (std::vector<std::uint32_t>{100}));
}

TEST(SentSizes, NumbersWrap) {
  SentSizes sizes;
  for (const std::uint32_t number : {0xffff'fffeU, 0xffff'ffffU, 0U, 1U}) sizes.push(number, 1);
  EXPECT_EQ(numbers_of(sizes.from(0xffff'ffffU)), (std::vector<std::uint32_t>{0xffff'ffffU, 0, 1}));
  EXPECT_EQ(numbers_of(sizes.from(0)), (std::vector<std::uint32_t>{0, 1}));
  sizes.forget_before(0);
  EXPECT_EQ(numbers_of(sizes.all()), (std::vector<std::uint32_t>{0, 1}));
}

}  // namespace
}  // namespace weft::channel
