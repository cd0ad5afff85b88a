// Which PE has which rank.
#pragma once

#include <string>
#include <vector>

namespace weft::mpi_host {

// More than any machine runs; it bounds what a wrong number can allocate.
inline constexpr int kMaxRanks = 1 << 20;

// The PE of each rank. `how` is "block", "round-robin", or the path of a file with one PE number per line, a line for each
// rank. Each PE has at least one rank, because each PE takes part in the job.
// Throws: Refusal.
std::vector<int> map_ranks(int num_ranks, int num_pes, const std::string& how);

}  // namespace weft::mpi_host
