#include "checkpoint/crc32c.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/checkpoint/files.h"

namespace weft::checkpoint_files {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  const std::string digits = "123456789";
  std::vector<unsigned char> ascending(32);
  std::iota(ascending.begin(), ascending.end(), static_cast<unsigned char>(0));
  const std::vector<unsigned char> zeros(32);
  for (auto* crc : {&crc32c, &crc32c_by_table}) {
    EXPECT_EQ(crc(digits.data(), digits.size(), 0), 0xe3069283u);
    EXPECT_EQ(crc(zeros.data(), zeros.size(), 0), 0x8a9136aau);
    EXPECT_EQ(crc(ascending.data(), ascending.size(), 0), 0x46dd794eu);
    EXPECT_EQ(crc(nullptr, 0, 0), 0u);
  }
}

TEST(Crc32c, InstructionAndTableAgreeInPartsOfAnySize) {
  const std::uint32_t seed = testing::seed_of_test(20261123);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::vector<unsigned char> bytes(1000);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  const std::uint32_t whole = crc32c_by_table(bytes.data(), bytes.size());
  EXPECT_EQ(crc32c(bytes.data(), bytes.size()), whole);
  for (int round = 0; round < 100; ++round) {
    const std::size_t cut = random() % bytes.size();
    EXPECT_EQ(crc32c(bytes.data() + cut, bytes.size() - cut, crc32c(bytes.data(), cut)), whole) << cut;
  }
}

}  // namespace
}  // namespace weft::checkpoint_files
