#include "models/chare/checkpoint/block_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::chare {

using checkpoint_files::ProtectedState;

namespace {

// In the ring of these PEs, the copy of a PE is on the one so many places on. Each keeps one copy therefore.
std::size_t distance_of_buddies(const std::vector<std::uint32_t>& pes, const std::vector<int>& hosts) {
  if (hosts.empty()) return 1;
  std::size_t best = 1;
  std::size_t most = 0;
  for (std::size_t distance = 1; distance < pes.size() && most < pes.size(); ++distance) {
    std::size_t num_apart = 0;
    for (std::size_t i = 0; i < pes.size(); ++i)
      num_apart += hosts.at(pes[i]) != hosts.at(pes[(i + distance) % pes.size()]) ? 1u : 0u;
    if (num_apart > most) {
      most = num_apart;
      best = distance;
    }
  }
  return best;
}

std::vector<std::uint32_t> all_pes_but(std::uint32_t num_pes, const std::vector<std::uint32_t>& leaving) {
  std::vector<std::uint32_t> pes;
  for (std::uint32_t pe = 0; pe < num_pes; ++pe) {
    if (std::ranges::find(leaving, pe) == leaving.end()) pes.push_back(pe);
  }
  return pes;
}

// The PEs that have each block of the state: those of the PE itself first.
std::map<std::uint32_t, std::vector<std::uint32_t>> holders_of(
    std::uint64_t state, const std::vector<CheckpointStepResult>& holdings) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> holders;
  for (std::size_t pe = 0; pe < holdings.size(); ++pe) {
    for (const ProtectedState::BlockId& id : holdings[pe].blocks) {
      if (id.state == state) holders[id.pe].push_back(static_cast<std::uint32_t>(pe));
    }
  }
  return holders;
}

// `buddy`: empty if the hosts of the PEs were perhaps others when the state was protected.
[[noreturn]] void block_is_lost(std::uint32_t block, std::optional<std::uint32_t> buddy,
                                std::uint32_t num_blocks, std::uint32_t num_pes) {
  const std::string who =
      num_blocks == num_pes
          ? base::format(
                "the chares of PE {0} cannot be recovered: PE {0}, which kept their state, and {1}, "
                "which kept a copy, were both lost",
                block, buddy ? base::format("PE {}", *buddy) : "another PE")
          : base::format(
                "the chares that PE {} of {} had protected cannot be recovered: the PEs that kept "
                "their state were lost",
                block, num_blocks);
  throw base::Error(base::StatusCode::kNotFound,
                    base::format("{} before copies were made anew. Restore a checkpoint from a disk, if the "
                                 "program has one, or start the job again",
                                 who));
}

}  // namespace

BlockPlan plan_blocks(std::uint64_t state, std::uint32_t num_blocks,
                      const std::vector<CheckpointStepResult>& holdings, const std::vector<int>& hosts) {
  const auto num_pes = static_cast<std::uint32_t>(holdings.size());
  const auto distance = static_cast<std::uint32_t>(distance_of_buddies(all_pes_but(num_pes, {}), hosts));
  auto holders = holders_of(state, holdings);
  BlockPlan plan;
  std::vector<std::uint32_t> num_owned(num_pes);
  for (std::uint32_t block = 0; block < num_blocks; ++block) {
    const std::vector<std::uint32_t>& who = holders[block];
    if (who.empty())
      block_is_lost(block, hosts.empty() ? std::optional((block + 1) % num_pes) : std::nullopt, num_blocks,
                    num_pes);
    // The elements of a block have their homes on the PE of its number, if there are as many PEs as before.
    std::uint32_t owner = block;
    if (num_blocks != num_pes) {
      owner = *std::ranges::min_element(who, {}, [&](std::uint32_t pe) { return num_owned[pe]; });
    }
    std::uint32_t keeper = (owner + distance) % num_pes;
    if (num_blocks != num_pes) {
      const auto other = std::ranges::find_if(who, [owner](std::uint32_t pe) { return pe != owner; });
      if (other != who.end()) keeper = *other;
    }
    plan.owners.push_back(owner);
    ++num_owned[owner];
    for (const std::uint32_t to : {owner, keeper}) {
      const bool has = std::find(who.begin(), who.end(), to) != who.end();
      const auto& sent = plan.transfers;
      const bool is_planned = !sent.empty() && sent.back().to == to && sent.back().block == block;
      if (!has && !is_planned) plan.transfers.push_back({who.front(), to, block});
    }
  }
  return plan;
}

std::vector<CheckpointStep::Transfer> plan_copies(std::uint32_t num_pes,
                                                  const std::vector<std::uint32_t>& leaving,
                                                  const std::vector<int>& hosts) {
  const std::vector<std::uint32_t> staying = all_pes_but(num_pes, leaving);
  const std::size_t distance = distance_of_buddies(staying, hosts);
  std::vector<CheckpointStep::Transfer> transfers;
  for (std::uint32_t from = 0; from < num_pes; ++from) {
    const auto at = static_cast<std::size_t>(std::ranges::find(staying, from) - staying.begin());
    const bool stays = at < staying.size();
    const std::size_t first = stays ? at : from % staying.size();
    const std::uint32_t keeper = staying[first];
    const std::uint32_t other = staying[(first + distance) % staying.size()];
    if (!stays) transfers.push_back({from, keeper, from});
    if (other != keeper) transfers.push_back({from, other, from});
  }
  return transfers;
}

}  // namespace weft::chare
