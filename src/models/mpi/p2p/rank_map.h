// On which PE each rank is. Everything else names ranks, and asks here.
//
// Threads: the PE's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft::mpi {

class RankMap {
 public:
  // One rank for each PE.
  explicit RankMap(int num_pes);
  // pe_of_rank[i]: the PE of rank i. Throws Error if a PE does not exist or has no rank.
  RankMap(std::vector<int> pe_of_rank, int num_pes);

  int num_ranks() const { return static_cast<int>(pe_of_rank_.size()); }
  int num_pes() const { return num_pes_; }
  bool has(int rank) const { return rank >= 0 && rank < num_ranks(); }
  // REQUIRES: has(rank).
  int pe_of(int rank) const { return pe_of_rank_[static_cast<std::size_t>(rank)]; }
  // Whether a PE has more than one rank.
  bool shares_pes() const { return num_ranks() > num_pes_; }
  std::vector<int> ranks_on(int pe) const;
  // Equal for equal maps: what PEs compare at the start of a job.
  std::string fingerprint() const;

 private:
  int num_pes_;
  std::vector<int> pe_of_rank_;
};

}  // namespace weft::mpi
