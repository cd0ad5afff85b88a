#include "particles.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include "verification.h"

namespace pic {
namespace {

constexpr std::int64_t kStepsAway = 7;

Particles packed_and_unpacked(Particles& particles) {
  weft::Pup sizer = weft::Pup::sizer();
  particles.pup(sizer);
  std::vector<std::byte> bytes(sizer.offset_bytes());
  weft::Pup packer = weft::Pup::packer(bytes.data(), bytes.size());
  particles.pup(packer);
  Particles arrived;
  weft::Pup unpacker = weft::Pup::unpacker(bytes.data(), bytes.size());
  arrived.pup(unpacker);
  return arrived;
}

// All blocks of a problem step by step; each is packed and unpacked in between.
Found run(const Problem& problem) {
  std::vector<Particles> blocks;
  for (std::int64_t block = 0; block < problem.num_blocks(); ++block) blocks.emplace_back(problem, block);
  for (std::int64_t step = 0; step < kStepsAway; ++step) {
    for (Particles& block : blocks) block = packed_and_unpacked(block);
    for (Particles& block : blocks) block.move();
    for (const Particles& block : blocks) {
      for (std::size_t slot = 0; slot < block.partners().size(); ++slot) {
        blocks[static_cast<std::size_t>(block.partners()[slot])].put_in(block.outgoing()[slot]);
      }
    }
  }
  Found total;
  for (const Particles& block : blocks) total += examine(problem, block.fields(), kStepsAway);
  return total;
}

TEST(ParticlesTest, AreWhereTheyMustBeHoweverTheGridIsCut) {
  for (std::int64_t k : {0, 1, 9}) {
    for (std::int64_t m : {0, 1, -13}) {
      Problem problem;
      problem.size = 20;
      problem.particles = 500;
      problem.ratio = 0.9;
      problem.k = k;
      problem.m = m;
      std::uint64_t checksum = 0;
      for (std::int64_t num_blocks : {1, 2, 5, 12}) {
        for (const char* split : {"x", "y", "2d"}) {
          cut(problem, num_blocks, split);
          const Found found = run(problem);
          EXPECT_TRUE(judge(problem, found).correct) << judge(problem, found).text;
          if (num_blocks == 1) checksum = found.checksum;
          EXPECT_EQ(found.checksum, checksum);
        }
      }
    }
  }
}

}  // namespace
}  // namespace pic
