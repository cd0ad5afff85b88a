#include "models/mpi/objects/handle_numbers.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

TEST(HandleNumbers, APredefinedHandleIsItsOwnNumber) {
  HandleNumbers numbers;
  EXPECT_EQ(numbers.number_of(0x101), 0x101);
  EXPECT_EQ(numbers.handle_of(0x101), 0x101U);
}

TEST(HandleNumbers, AnAddressKeepsItsNumber) {
  HandleNumbers numbers;
  const std::uintptr_t one = 0x7fff12345678;
  const std::uintptr_t other = 0x1000;
  const int number = numbers.number_of(one);
  EXPECT_GE(number, HandleNumbers::kFirst);
  EXPECT_NE(numbers.number_of(other), number);
  EXPECT_EQ(numbers.number_of(one), number);
  EXPECT_EQ(numbers.handle_of(number), one);
}

TEST(HandleNumbers, ANumberThatWasNotGivenHasNoHandle) {
  const HandleNumbers numbers;
  EXPECT_EQ(numbers.handle_of(-1), 0U);
  EXPECT_EQ(numbers.handle_of(HandleNumbers::kFirst), 0U);
}

}  // namespace
}  // namespace weft::mpi
