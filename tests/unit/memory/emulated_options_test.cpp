#include "memory/kinds/emulated/emulated_options.h"

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

TEST(EmulatedFaultsTest, Parses) {
  const auto faults =
      parse_emulated_faults("polls=10,fail_copy=3,fail_allocation=2,device_bytes=1048576,refuse_exports=1");
  ASSERT_TRUE(faults.ok()) << faults.status().to_string();
  EXPECT_EQ(faults.value().polls_per_copy, 10);
  EXPECT_EQ(faults.value().fail_copy, 3u);
  EXPECT_EQ(faults.value().fail_allocation, 2u);
  EXPECT_EQ(faults.value().device_bytes, 1048576u);
}

TEST(EmulatedFaultsTest, EachPartIsOptional) {
  const auto faults = parse_emulated_faults("fail_copy=1");
  ASSERT_TRUE(faults.ok());
  EXPECT_EQ(faults.value().fail_copy, 1u);
  EXPECT_EQ(faults.value().polls_per_copy, EmulatedFaults().polls_per_copy);
  EXPECT_EQ(faults.value().fail_allocation, 0u);
  EXPECT_TRUE(parse_emulated_faults("").ok());
}

TEST(EmulatedFaultsTest, RefusesWhatItDoesNotKnow) {
  for (const char* text : {"polls", "polls=", "polls=0", "polls=-1", "polls=3x", "slow=1",
                           "polls=99999999999", "fail_copy=1,,fail_copy=2", "fail_copy = 1"}) {
    const auto faults = parse_emulated_faults(text);
    EXPECT_EQ(faults.status().code(), base::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(faults.status().message().find("fail_copy=N"), std::string_view::npos)
        << "it must say what it expects";
  }
}

}  // namespace
}  // namespace weft::memory
