#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "decomposition.h"
#include "field.h"
#include "options.h"
#include "verification.h"

namespace jacobi3d {
namespace {

TEST(DivideTest, HasTheLeastArea) {
  EXPECT_EQ(divide({96, 96, 96}, 8), (Triple{2, 2, 2}));
  EXPECT_EQ(divide({100, 10, 10}, 4), (Triple{4, 1, 1}));
  EXPECT_EQ(divide({10, 10, 100}, 4), (Triple{1, 1, 4}));
  EXPECT_EQ(divide({96, 96, 96}, 2), (Triple{2, 1, 1})) << "of equals, the cut across x";
  EXPECT_EQ(divide({2, 50, 50}, 7), (Triple{1, 7, 1}));
}

TEST(DivideTest, RefusesBlocksWithoutPoints) {
  EXPECT_EQ(divide({2, 2, 2}, 8), (Triple{2, 2, 2}));
  EXPECT_THROW(divide({2, 2, 2}, 16), UserError);
  EXPECT_THROW(divide({6, 6, 6}, 7), UserError) << "a prime number of blocks along no dimension";
}

TEST(RangeTest, CoversEveryPointOnce) {
  const Problem problem{{7, 11, 5}, {3, 4, 5}};
  std::vector<double> owners(num_points(problem.points), 0.0);
  for (int x = 0; x < 3; ++x) {
    for (int y = 0; y < 4; ++y) {
      for (int z = 0; z < 5; ++z) {
        Range range = range_of(problem, {x, y, z});
        std::vector<double> one(num_points(range.size), 1.0);
        ASSERT_FALSE(one.empty());
        std::vector<double> placed(owners.size(), 0.0);
        place_block(problem.points, range, one, placed);
        for (std::size_t i = 0; i < owners.size(); ++i) owners[i] += placed[i];
      }
    }
  }
  EXPECT_EQ(owners, std::vector<double>(owners.size(), 1.0));
}

TEST(HomeTest, EveryPeHasItsShareAsABrick) {
  const weft::Shape blocks{4, 4, 4};
  for (int num_pes : {1, 2, 4, 8, 16, 32, 64}) {
    std::map<int, int> num_blocks;
    for (std::uint64_t i = 0; i < blocks.size(); ++i) ++num_blocks[home_pe(blocks.index(i), blocks, num_pes)];
    ASSERT_EQ(num_blocks.size(), static_cast<std::size_t>(num_pes));
    for (const auto& [pe, count] : num_blocks) EXPECT_EQ(count, 64 / num_pes) << "PE " << pe;
  }
  // 2 x 2 x 2 bricks: one step within a brick stays on the PE.
  EXPECT_EQ(home_pe({0, 0, 0}, blocks, 8), home_pe({1, 1, 1}, blocks, 8));
  EXPECT_NE(home_pe({1, 0, 0}, blocks, 8), home_pe({2, 0, 0}, blocks, 8));
}

// Two blocks that exchange halos by hand, cut across each dimension in turn.
TEST(FieldTest, TwoBlocksComputeWhatOneDoes) {
  for (std::size_t d = 0; d < 3; ++d) {
    Problem problem{{5, 4, 3}, {1, 1, 1}};
    problem.blocks[d] = 2;
    Triple upper_index{};
    upper_index[d] = 1;
    HostField lower(range_of(problem, {0, 0, 0})), upper(range_of(problem, upper_index));
    const int face = 2 * static_cast<int>(d);
    std::vector<double> halo(lower.face_points(face));
    for (int iteration = 0; iteration < 6; ++iteration) {
      lower.pack(face + 1, halo);
      upper.unpack(face, halo);
      upper.pack(face, halo);
      lower.unpack(face + 1, halo);
      lower.update();
      upper.update();
    }
    std::vector<double> grid(num_points(problem.points));
    place_block(problem.points, range_of(problem, {0, 0, 0}), lower.values(), grid);
    place_block(problem.points, range_of(problem, upper_index), upper.values(), grid);
    EXPECT_TRUE(compare(problem.points, grid, solve_serially(problem.points, 6)).equal())
        << "dimension " << d;

    HostField whole({{0, 0, 0}, problem.points});
    for (int iteration = 0; iteration < 6; ++iteration) whole.update();
    EXPECT_EQ(lower.checksum(problem.points) + upper.checksum(problem.points),
              whole.checksum(problem.points));
  }
}

TEST(CompareTest, FindsEveryKindOfDifference) {
  const Triple points{3, 4, 5};
  const std::vector<double> expected = solve_serially(points, 3);
  EXPECT_TRUE(compare(points, expected, expected).equal());

  std::vector<double> result = expected;
  result[17] = std::nextafter(result[17], 2.0);  // the last bit
  Comparison comparison = compare(points, result, expected);
  EXPECT_FALSE(comparison.equal());
  EXPECT_EQ(comparison.num_different, 1U);
  EXPECT_EQ(comparison.first, (Triple{0, 3, 2}));
  EXPECT_GT(comparison.largest_difference, 0.0);

  result[42] = std::numeric_limits<double>::quiet_NaN();
  comparison = compare(points, result, expected);
  EXPECT_EQ(comparison.num_different, 2U);
  EXPECT_EQ(comparison.largest_difference, std::numeric_limits<double>::infinity());
  EXPECT_NE(comparison.describe().find("2 of 60 values differ"), std::string::npos) << comparison.describe();

  EXPECT_FALSE(compare({1, 1, 1}, std::vector{-0.0}, std::vector{0.0}).equal());
}

// One iteration too few, or a halo that came late, must show.
TEST(CompareTest, NeighbouringIterationsDiffer) {
  const Triple points{6, 6, 6};
  EXPECT_GT(compare(points, solve_serially(points, 4), solve_serially(points, 5)).num_different, 200U);
}

Options parse(std::vector<std::string> words) {
  words.insert(words.begin(), "jacobi3d");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(OptionsTest, AreTaken) {
  Options options = parse({"--size", "7", "8", "9", "--odf", "2", "--model", "channel", "--verify"});
  EXPECT_EQ(options.points, (Triple{7, 8, 9}));
  EXPECT_EQ(options.odf, 2);
  EXPECT_EQ(options.models, std::vector<std::string>{"channel"});
  EXPECT_TRUE(options.verify);
  EXPECT_EQ(parse({"--size", "12", "--warmup", "0"}).points, (Triple{12, 12, 12}));
  EXPECT_EQ(parse({}).models.size(), 2U);
}

TEST(OptionsTest, MistakesAreNamed) {
  auto message = [](const std::vector<std::string>& words) {
    try {
      parse(words);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message({"--odf", "0"}), "--odf must be a whole number of at least 1, not '0'");
  EXPECT_EQ(message({"--size", "8x8"}), "--size must be a whole number of at least 1, not '8x8'");
  EXPECT_EQ(message({"--size", "8", "8"}), "--size takes one number, or three: X Y Z");
  EXPECT_EQ(message({"--iterations"}), "--iterations needs a value");
  EXPECT_EQ(message({"--model", "mpi"}), "--model must be messaging, channel or both, not 'mpi'");
  EXPECT_EQ(message({"--fast"}), "there is no option '--fast'");
  EXPECT_EQ(message({"--size", "8", "8", "8", "8"}), "there is no option '8'");
}

}  // namespace
}  // namespace jacobi3d
