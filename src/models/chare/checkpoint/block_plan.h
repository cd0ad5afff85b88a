// Which PEs keep the blocks of a protected state, and which one restores each of them. Nothing is sent here.
//
// `hosts`: the host of each PE, any number; empty if the job has one host. The two PEs that keep a block are on different hosts, as far as
// the hosts have equally many PEs.
#pragma once

#include <cstdint>
#include <vector>

#include "models/chare/checkpoint/checkpoints.h"

namespace weft::chare {

struct BlockPlan {
  std::vector<std::uint32_t> owners;                // by block, the PE that restores its elements
  std::vector<CheckpointStep::Transfer> transfers;  // so that its owner and another PE have it
};

// For a state of `num_blocks` PEs that the PEs of this job recover. `holdings`: what each PE has. Throws Error(kNotFound) if no PE
// has a block.
BlockPlan plan_blocks(std::uint64_t state, std::uint32_t num_blocks,
                      const std::vector<CheckpointStepResult>& holdings, const std::vector<int>& hosts);

// For a new state: what must be sent so that each block is on two PEs that do not leave, if there are as many. Without PEs that leave these
// are the PE itself and its buddy: the next one, or the next one on another host. REQUIRES: a PE stays.
std::vector<CheckpointStep::Transfer> plan_copies(std::uint32_t num_pes,
                                                  const std::vector<std::uint32_t>& leaving,
                                                  const std::vector<int>& hosts);

}  // namespace weft::chare
