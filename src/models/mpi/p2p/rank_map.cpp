#include "models/mpi/p2p/rank_map.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::mpi {

RankMap::RankMap(int num_pes) : num_pes_(num_pes), pe_of_rank_(static_cast<std::size_t>(num_pes)) {
  std::iota(pe_of_rank_.begin(), pe_of_rank_.end(), 0);
}

RankMap::RankMap(std::vector<int> pe_of_rank, int num_pes)
    : num_pes_(num_pes), pe_of_rank_(std::move(pe_of_rank)) {
  std::vector<bool> has_rank(static_cast<std::size_t>(num_pes), false);
  for (std::size_t rank = 0; rank < pe_of_rank_.size(); ++rank) {
    const int pe = pe_of_rank_[rank];
    if (pe < 0 || pe >= num_pes) {
      throw base::Error(
          base::StatusCode::kInvalidArgument,
          base::format("MPI rank {} is mapped to PE {}; this job has PEs 0 to {}", rank, pe, num_pes - 1));
    }
    has_rank[static_cast<std::size_t>(pe)] = true;
  }
  for (std::size_t pe = 0; pe < has_rank.size(); ++pe) {
    if (has_rank[pe]) continue;
    throw base::Error(
        base::StatusCode::kInvalidArgument,
        base::format("PE {} has no MPI rank; map at least one rank to each of the {} PEs", pe, num_pes));
  }
}

std::vector<int> RankMap::ranks_on(int pe) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < num_ranks(); ++rank) {
    if (pe_of(rank) == pe) ranks.push_back(rank);
  }
  return ranks;
}

// FNV-1a of the numbers.
std::string RankMap::fingerprint() const {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const int pe : pe_of_rank_) hash = (hash ^ static_cast<std::uint64_t>(pe)) * 0x100000001b3U;
  return base::format("{} ranks, map {:016x}", num_ranks(), hash);
}

}  // namespace weft::mpi
