#include "machine/peer_memory/ucx_mappings.h"

#include <gtest/gtest.h>

namespace weft::machine {
namespace {

constexpr memory::Place kGpu{memory::Kind::kCuda, 0};

TEST(UcxMappings, AnAllocationIsAdmittedEachTime) {
  UcxMappings mappings;
  for (int use = 0; use < 3; ++use) {
    EXPECT_TRUE(mappings.admit({1000, 100, kGpu, 1}));
    EXPECT_TRUE(mappings.admit({1100, 100, kGpu, 2}));
    EXPECT_TRUE(mappings.admit({900, 100, kGpu, 3}));
  }
}

TEST(UcxMappings, ANewOneReplacesTheOneAtItsFirstByte) {
  UcxMappings mappings;
  ASSERT_TRUE(mappings.admit({1000, 100, kGpu, 1}));
  EXPECT_TRUE(mappings.admit({1000, 100, kGpu, 2})) << "the same addresses";
  EXPECT_TRUE(mappings.admit({1050, 300, kGpu, 3})) << "begins inside";
  EXPECT_TRUE(mappings.admit({1000, 50, kGpu, 4})) << "ends where that one begins";
  EXPECT_TRUE(mappings.admit({1050, 300, kGpu, 3})) << "still known";
}

TEST(UcxMappings, OneThatBeginsBehindTheFirstByteIsInTheWay) {
  UcxMappings mappings;
  ASSERT_TRUE(mappings.admit({1000, 100, kGpu, 1}));
  ASSERT_TRUE(mappings.admit({1200, 100, kGpu, 2}));
  for (int use = 0; use < 2; ++use) {
    EXPECT_FALSE(mappings.admit({900, 101, kGpu, 3}));
    EXPECT_FALSE(mappings.admit({1000, 201, kGpu, 4})) << "one at the first byte, and another one behind it";
    EXPECT_FALSE(mappings.admit({800, 1000, kGpu, 5})) << "around both";
  }
  EXPECT_TRUE(mappings.admit({1000, 200, kGpu, 6}));
}

TEST(UcxMappings, MemoryThatCannotBeToldApartIsAdmitted) {
  UcxMappings mappings;
  ASSERT_TRUE(mappings.admit({1000, 100, kGpu, 1}));
  EXPECT_TRUE(mappings.admit({900, 200, kGpu, 0}));
}

TEST(UcxMappings, ItsSizeIsBounded) {
  UcxMappings mappings;
  for (std::uintptr_t i = 0; i < UcxMappings::kMost; ++i)
    ASSERT_TRUE(mappings.admit({1000 + 10 * i, 10, kGpu, i + 1}));
  EXPECT_FALSE(mappings.admit({1005, 10, kGpu, 9000})) << "all are known";
  ASSERT_TRUE(mappings.admit({100, 10, kGpu, 9001}));
  EXPECT_TRUE(mappings.admit({1005, 10, kGpu, 9000}));
}

}  // namespace
}  // namespace weft::machine
