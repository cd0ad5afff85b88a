// Says which memory kinds this run of the suite could not test.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

class KindTest : public ::testing::TestWithParam<memory::Kind> {};

TEST_P(KindTest, IsTested) {
  const auto kinds = usable_kinds();
  if (std::ranges::find(kinds, GetParam()) == kinds.end()) {
    const bool is_required = std::getenv("WEFT_REQUIRE_GPU") != nullptr && GetParam() == memory::Kind::kCuda;
    ASSERT_FALSE(is_required) << "WEFT_REQUIRE_GPU is set and kind cuda cannot be used";
    std::printf("SKIPPED: no GPU\n");
    GTEST_SKIP()
        << "memory kind " << memory::kind_name(GetParam())
        << " cannot be used in this process (no driver or no device): NO test of this suite ran on it";
  }
}

INSTANTIATE_TEST_SUITE_P(All, KindTest, ::testing::ValuesIn(all_kinds()),
                         [](const auto& info) { return std::string(memory::kind_name(info.param)); });

}  // namespace
}  // namespace weft::conformance
