#include "models/chare/checkpoint/block_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "weft/base/error.h"

namespace weft::chare {
namespace {

using Keepers = std::map<std::uint32_t, std::set<std::uint32_t>>;

// Where each block is once these transfers are done.
Keepers keepers_of(std::uint32_t num_pes, const std::vector<CheckpointStep::Transfer>& transfers,
                   const std::vector<std::uint32_t>& leaving) {
  Keepers keepers;
  for (std::uint32_t pe = 0; pe < num_pes; ++pe) {
    if (std::ranges::find(leaving, pe) == leaving.end()) keepers[pe].insert(pe);
  }
  for (const auto& [from, to, block] : transfers) keepers[block].insert(to);
  return keepers;
}

int num_apart(const Keepers& keepers, const std::vector<int>& hosts) {
  return static_cast<int>(std::ranges::count_if(keepers, [&](const auto& one) {
    const auto& [block, pes] = one;
    return pes.size() == 2 && hosts.at(*pes.begin()) != hosts.at(*pes.rbegin());
  }));
}

TEST(BlockPlanTest, TheNextPeKeepsTheCopyOnOneHost) {
  const Keepers keepers = keepers_of(3, plan_copies(3, {}, {}), {});
  EXPECT_EQ(keepers, (Keepers{{0, {0, 1}}, {1, {1, 2}}, {2, {2, 0}}}));
}

TEST(BlockPlanTest, CopiesAreOnOtherHosts) {
  const std::vector<int> blocks = {0, 0, 0, 1, 1, 1};
  EXPECT_EQ(num_apart(keepers_of(6, plan_copies(6, {}, blocks), {}), blocks), 6);
  const std::vector<int> in_turn = {0, 1, 2, 0, 1, 2};
  EXPECT_EQ(num_apart(keepers_of(6, plan_copies(6, {}, in_turn), {}), in_turn), 6);
  // Two PEs of the large host have no partner elsewhere if each PE keeps one copy.
  const std::vector<int> uneven = {0, 0, 0, 0, 1, 1};
  EXPECT_EQ(num_apart(keepers_of(6, plan_copies(6, {}, uneven), {}), uneven), 4);
}

TEST(BlockPlanTest, CopiesAreOnOtherHostsWhenPesLeave) {
  const std::vector<int> hosts = {0, 0, 0, 1, 1, 1};
  const std::vector<std::uint32_t> leaving = {2, 5};
  const Keepers keepers = keepers_of(6, plan_copies(6, leaving, hosts), leaving);
  EXPECT_EQ(num_apart(keepers, hosts), 6);
  for (const auto& [block, pes] : keepers) {
    EXPECT_FALSE(pes.contains(2)) << block;
    EXPECT_FALSE(pes.contains(5)) << block;
  }
}

TEST(BlockPlanTest, BlocksOfALostHostAreSharedAnew) {
  const std::vector<int> hosts = {0, 0, 1, 1};
  std::vector<CheckpointStepResult> holdings(4);
  // PEs 2 and 3 are new. Each of the others has its own block and that of a PE of the lost host.
  for (std::uint32_t pe : {0u, 1u}) holdings[pe].blocks = {{7, pe}, {7, pe + 2}};
  const BlockPlan plan = plan_blocks(7, 4, holdings, hosts);
  EXPECT_EQ(plan.owners, (std::vector<std::uint32_t>{0, 1, 2, 3}));
  Keepers keepers;
  for (std::uint32_t pe : {0u, 1u}) {
    keepers[pe].insert(pe);
    keepers[pe + 2].insert(pe);
  }
  for (const auto& [from, to, block] : plan.transfers) {
    EXPECT_TRUE(keepers[block].contains(from)) << "PE " << from << " has no block " << block;
    keepers[block].insert(to);
  }
  EXPECT_EQ(num_apart(keepers, hosts), 4);
}

TEST(BlockPlanTest, ABlockThatNoPeHasIsNamed) {
  std::vector<CheckpointStepResult> holdings(4);
  for (std::uint32_t pe : {0u, 2u}) holdings[pe].blocks = {{7, pe}};
  try {
    static_cast<void>(plan_blocks(7, 4, holdings, {0, 0, 1, 1}));
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("PE 1, which kept their state, and another PE, which kept a copy"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace weft::chare
