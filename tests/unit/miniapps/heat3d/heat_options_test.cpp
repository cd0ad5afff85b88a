#include "heat_options.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "decomposition.h"

namespace heat3d {
namespace {

Options parse(std::vector<std::string> words) {
  words.insert(words.begin(), "heat3d");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

TEST(HeatOptionsTest, EachOptionIsRead) {
  const Options options = parse({"--size", "4", "5", "6", "--odf", "3", "--steps", "7", "--warmup", "0",
                                 "--exchange", "channel", "--memory", "emulated", "--verify", "--pin"});
  EXPECT_EQ(options.points, (Triple{4, 5, 6}));
  EXPECT_EQ(options.odf, 3);
  EXPECT_EQ(options.all_steps(), 7);
  EXPECT_EQ(options.exchange, Exchange::kChannel);
  EXPECT_EQ(options.placement.memory, weft::Kind::kEmulated);
  EXPECT_TRUE(options.verify && options.pin);
}

TEST(HeatOptionsTest, PowerEntersInTheFirstHalfOfAllSteps) {
  const Body body = parse({"--steps", "10", "--warmup", "4"}).body();
  EXPECT_EQ(body.power_steps, 7);
  EXPECT_EQ(body.points, (Triple{64, 64, 64}));
}

TEST(HeatOptionsTest, MistakesAreRefused) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--steps", "2"},
                                                                                     {"--size", "0"},
                                                                                     {"--exchange", "both"},
                                                                                     {"--memory", "tape"},
                                                                                     {"--odd"},
                                                                                     {"--json"}})
    EXPECT_THROW(parse(words), jacobi3d::UserError) << words.front();
}

}  // namespace
}  // namespace heat3d
