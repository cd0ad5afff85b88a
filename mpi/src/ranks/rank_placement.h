// Where ranks shall be, by the load-balancing strategy of `weft run --lb`.
//
// Threads: the PE's.
#pragma once

#include <string>
#include <vector>

#include "weft/base/status.h"

#include "models/mpi/p2p/rank_map.h"

namespace weft::mpi {

// Reads WEFT_LB and WEFT_LB_VERBOSE. Once, before ranks run: each rank may change its environment, and all must do the same.
void read_balance_settings();

// Whether the job has a strategy that moves anything.
bool balances_loads();

// `loads_s`: by rank. Each PE keeps at least one rank. The strategy's state, if it has one, is that of this process.
base::Result<std::vector<int>> balanced_places(const RankMap& map, const std::vector<double>& loads_s);

// For tests: gives each PE without a rank one of its ranks back.
void keep_a_rank_on_each_pe(const RankMap& map, const std::vector<double>& loads_s,
                            std::vector<int>& pe_of_rank);

}  // namespace weft::mpi
