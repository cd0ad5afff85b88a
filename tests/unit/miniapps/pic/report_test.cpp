#include "report.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pic {
namespace {

TEST(ReportTest, BalancingEndsWhenTheLastPeGoesOn) {
  // The second block of PE 1 goes on late, because the first one computes.
  const std::vector<Account> blocks{{0, {{1.0, 5.0, 0}, {10.0, 11.0, 1}}},
                                    {0, {{2.0, 6.0, 1}, {9.0, 10.5, 1}}},
                                    {0, {{4.0, 9.0, 1}, {8.0, 10.25, 0}}}};
  EXPECT_DOUBLE_EQ(balancing_s(blocks), (6.0 - 4.0) + (10.5 - 10.0));
  EXPECT_EQ(balancing_s({{0, {}}, {0, {}}}), 0);
}

TEST(ReportTest, TheLastLineIsAJsonObject) {
  Options options;
  options.problem.particles = 10;
  options.steps = 7;
  Result result;
  result.overall_s = 1.5;
  result.checksum = 0xab;
  const auto last_line = [&] {
    const std::string text = report(options, result, 2);
    return text.substr(text.rfind('\n') + 1);
  };
  EXPECT_EQ(
      last_line(),
      R"({"size_bytes": 480, "metric": "time_s", "value": 1.5, "compute_s": 0, "balancing_s": 0, "syncs": 0, )"
      R"("pes": 2, "odf": 1, "steps": 7, "checksum": "00000000000000ab", "verified": null})");
  result.verdict = Verdict{false, "wrong"};
  EXPECT_NE(last_line().find(R"("verified": false})"), std::string::npos);
}

}  // namespace
}  // namespace pic
