#include "options.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pic {
namespace {

Options parse(std::vector<std::string> words) {
  words.insert(words.begin(), "pic");
  std::vector<char*> argv;
  argv.reserve(words.size());
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(OptionsTest, AreRead) {
  const Options options =
      parse({"--size", "20", "--m", "-2", "--distribution", "linear", "--linear", "0.5", "2", "--odf", "3",
             "--lb-every", "4", "--load", "particles", "--split", "2d", "--verify"});
  EXPECT_EQ(options.problem.size, 20);
  EXPECT_EQ(options.problem.m, -2);
  EXPECT_EQ(options.problem.distribution, Distribution::kLinear);
  EXPECT_EQ(options.problem.alpha, 0.5);
  EXPECT_EQ(options.problem.beta, 2);
  EXPECT_EQ(options.problem.patch, (Area{0, 10, 0, 10})) << "a quarter of the grid";
  EXPECT_EQ(options.odf, 3);
  EXPECT_EQ(options.lb_every, 4);
  EXPECT_TRUE(options.counts_particles);
  EXPECT_EQ(options.split, "2d");
  EXPECT_TRUE(options.verify);
  EXPECT_EQ(parse({"--patch", "1", "2", "3", "4"}).problem.patch, (Area{1, 3, 3, 5})) << "edges belong to it";
}

TEST(OptionsTest, MistakesAreRefused) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"--odf", "0"},
                                             {"--size"},
                                             {"--size", "--odf"},
                                             {"--ratio", "high"},
                                             {"--ratio", "nan"},
                                             {"--k", "-1"},
                                             {"--split", "z"},
                                             {"--patch", "1", "2", "3"},
                                             {"--fast"}}) {
    EXPECT_THROW(parse(words), UserError) << words[0];
  }
}

}  // namespace
}  // namespace pic
