#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "decomposition.h"
#include "device.h"
#include "device_streams/device_queues.h"
#include "field.h"
#include "options.h"
#include "tests/support/in_process_job.h"
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

Halos one_halo(int face, double* values) {
  Halos halos;
  halos.add(face, values);
  return halos;
}

// The bits of two blocks that exchange halos on a device, cut across dimension `d`, and of one block.
struct Sums {
  std::uint64_t two = 0;
  std::uint64_t one = 0;
};

weft::Task<Sums> compute_in_two_blocks(weft::Runtime& runtime, std::size_t d, weft::Kind kind) {
  Problem problem{{5, 4, 3}, {1, 1, 1}};
  problem.blocks[d] = 2;
  Triple upper_index{};
  upper_index[d] = 1;
  const weft::Place place = weft::device_of(runtime, kind);
  auto device = kind == weft::Kind::kHost ? make_host_device() : make_emulated_device();
  Field lower(runtime, range_of(problem, {0, 0, 0}), place, *device);
  Field upper(runtime, range_of(problem, upper_index), place, *device);
  const int face = 2 * static_cast<int>(d);
  weft::DeviceArray<double> up(runtime, lower.face_points(face), place);
  weft::DeviceArray<double> down(runtime, lower.face_points(face), place);
  for (int iteration = 0; iteration < 6; ++iteration) {
    lower.pack(one_halo(face + 1, up.data()));
    upper.pack(one_halo(face, down.data()));
    co_await lower.done();
    co_await upper.done();
    upper.unpack(one_halo(face, up.data()));
    lower.unpack(one_halo(face + 1, down.data()));
    lower.update();
    upper.update();
    // Their streams know nothing of one another: up and down are written again.
    co_await lower.done();
    co_await upper.done();
  }
  Field whole(runtime, {{0, 0, 0}, problem.points}, place, *device);
  for (int iteration = 0; iteration < 6; ++iteration) whole.update();
  std::vector<double> grid(num_points(problem.points));
  std::vector<double> lower_values = co_await lower.values(), upper_values = co_await upper.values();
  place_block(problem.points, range_of(problem, {0, 0, 0}), lower_values, grid);
  place_block(problem.points, range_of(problem, upper_index), upper_values, grid);
  EXPECT_TRUE(compare(problem.points, grid, solve_serially(problem.points, 6)).equal()) << "dimension " << d;
  EXPECT_EQ(lower.take_intervals().size(), 3U * 6) << "an update and two packings in each iteration";
  EXPECT_TRUE(lower.take_intervals().empty());
  Sums sums;
  sums.two = co_await lower.checksum(problem.points);
  sums.two += co_await upper.checksum(problem.points);
  sums.one = co_await whole.checksum(problem.points);
  co_return sums;
}

TEST(FieldTest, TwoBlocksComputeWhatOneDoes) {
  for (weft::Kind kind : {weft::Kind::kHost, weft::Kind::kEmulated}) {
    for (std::size_t d = 0; d < 3; ++d) {
      weft::testing::InProcessJob job(1);
      Sums sums;
      EXPECT_EQ(job.run([&](weft::Runtime& runtime) -> weft::Task<> {
        sums = co_await compute_in_two_blocks(runtime, d, kind);
      }),
                "");
      EXPECT_EQ(sums.two, sums.one) << kind_name(kind) << ", dimension " << d;
      EXPECT_NE(sums.one, 0U);
    }
  }
}

TEST(TimesTest, TimeIsCountedOnce) {
  using enum Phase;
  EXPECT_EQ(add_up({}).compute_s, 0.0);
  // Two blocks update at once; packing counts where nobody updates.
  Times times = add_up({{kPack, 9, 10}, {kCompute, 2, 5}, {kCompute, 1, 3}, {kPack, 4, 7}, {kPack, 4.5, 6}});
  EXPECT_DOUBLE_EQ(times.compute_s, 4.0);
  EXPECT_DOUBLE_EQ(times.pack_s, 3.0);
  // One within another, and times before the clock's zero.
  times = add_up({{kCompute, -4, -1}, {kCompute, -3, -2}, {kPack, -2, -1}});
  EXPECT_DOUBLE_EQ(times.compute_s, 3.0);
  EXPECT_DOUBLE_EQ(times.pack_s, 0.0);
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
  EXPECT_EQ(options.placement.memory, weft::Kind::kHost);
  options = parse({"--memory", "emulated", "--staging", "host"});
  EXPECT_EQ(options.placement.memory, weft::Kind::kEmulated);
  EXPECT_TRUE(options.placement.host_staging);
  EXPECT_FALSE(parse({"--memory", "cuda"}).placement.host_staging);
  EXPECT_EQ(parse({"--size", "12", "--warmup", "0"}).points, (Triple{12, 12, 12}));
  EXPECT_EQ(parse({}).models.size(), 2U);
  options = parse({"--model", "graph", "--memory", "emulated", "--odf", "99"});
  EXPECT_EQ(options.models, std::vector<std::string>{"graph"});
}

// Each block's stream needs a hardware queue, of which CUDA has 8 unless it is told otherwise.
TEST(OptionsTest, StreamsThatWaitHaveAQueueEach) {
  const auto is_taken = [](const std::string& odf, const std::string& model) {
    try {
      parse({"--memory", "cuda", "--odf", odf, "--model", model});
    } catch (const UserError&) {
      return false;
    }
    return true;
  };
  unsetenv(miniapps::kDeviceQueuesSetting);
  EXPECT_FALSE(is_taken("1", "queued"));
  EXPECT_TRUE(is_taken("99", "channel"));
  setenv(miniapps::kDeviceQueuesSetting, miniapps::kMostDeviceQueues, 1);
  EXPECT_TRUE(is_taken("24", "queued"));
  EXPECT_FALSE(is_taken("25", "graph"));
  setenv(miniapps::kDeviceQueuesSetting, "many", 1);
  EXPECT_FALSE(is_taken("1", "queued"));
  unsetenv(miniapps::kDeviceQueuesSetting);
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
  EXPECT_EQ(message({"--model", "mpi"}),
            "--model must be one of messaging, channel, queued, graph, both, not 'mpi'");
  EXPECT_EQ(message({"--model", "queued"}),
            "--model queued needs streams of a device: give --memory emulated or cuda with it");
  EXPECT_EQ(message({"--model", "queued", "--memory", "cuda", "--staging", "host"}),
            "--model queued needs streams of a device: give it without --staging host");
  EXPECT_EQ(message({"--memory", "core"}), "--memory must be host, emulated or cuda, not 'core'");
  EXPECT_EQ(message({"--memory", "emulated", "--staging", "none"}),
            "--staging must be one of host, device, not 'none'");
  EXPECT_EQ(message({"--staging", "host"}),
            "--staging is about device memory: give --memory emulated or cuda with it");
  EXPECT_EQ(message({"--fast"}), "there is no option '--fast'");
  EXPECT_EQ(message({"--size", "8", "8", "8", "8"}), "there is no option '8'");
}

}  // namespace
}  // namespace jacobi3d
