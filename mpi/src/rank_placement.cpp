#include "rank_placement.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>

#include "weft/balance/snapshot.h"

#include "balance/strategy.h"
#include "balance/strategy_table.h"
#include "balance/summary.h"
#include "base/format.h"

namespace weft::mpi {

namespace {

std::string_view strategy_name() {
  const char* const name = std::getenv("WEFT_LB");
  return name == nullptr ? std::string_view("none") : std::string_view(name);
}

balance::Snapshot snapshot_of(const RankMap& map, const std::vector<double>& loads_s) {
  balance::Snapshot snapshot;
  snapshot.num_pes = map.num_pes();
  snapshot.background_load_s.resize(static_cast<std::size_t>(map.num_pes()));
  for (int rank = 0; rank < map.num_ranks(); ++rank) {
    snapshot.objects.push_back({.index = static_cast<std::uint64_t>(rank),
                                .pe = map.pe_of(rank),
                                .load_s = loads_s[static_cast<std::size_t>(rank)]});
  }
  return snapshot;
}

void report(const balance::Snapshot& snapshot, const balance::Placement& placement) {
  const char* const verbose = std::getenv("WEFT_LB_VERBOSE");
  if (verbose == nullptr || std::string_view(verbose) != "1") return;
  const balance::Summary summary = balance::summarize(snapshot, placement);
  std::fputs(
      base::format("weft: {} moves {} of {} ranks: imbalance {:.3f} before, {:.3f} after\n", strategy_name(),
                   summary.moves, snapshot.objects.size(), summary.imbalance_before, summary.imbalance_after)
          .c_str(),
      stderr);
}

}  // namespace

bool balances_loads() { return strategy_name() != "none"; }

void keep_a_rank_on_each_pe(const RankMap& map, const std::vector<double>& loads_s,
                            std::vector<int>& pe_of_rank) {
  std::vector<int> num_ranks(static_cast<std::size_t>(map.num_pes()));
  for (const int pe : pe_of_rank) ++num_ranks[static_cast<std::size_t>(pe)];
  for (int pe = 0; pe < map.num_pes(); ++pe) {
    if (num_ranks[static_cast<std::size_t>(pe)] != 0) continue;
    const std::vector<int> here = map.ranks_on(pe);
    int lightest = here.front();
    for (const int rank : here) {
      if (loads_s[static_cast<std::size_t>(rank)] < loads_s[static_cast<std::size_t>(lightest)])
        lightest = rank;
    }
    pe_of_rank[static_cast<std::size_t>(lightest)] = pe;
  }
}

base::Result<std::vector<int>> balanced_places(const RankMap& map, const std::vector<double>& loads_s) {
  static std::unique_ptr<balance::Strategy> strategy;
  if (strategy == nullptr) {
    auto made = balance::make_strategy(strategy_name());
    if (!made.ok()) return made.status();
    strategy = std::move(made).value();
  }
  const balance::Snapshot snapshot = snapshot_of(map, loads_s);
  if (base::Status status = balance::check(snapshot); !status.ok()) return status;
  balance::Placement placement = strategy->place(snapshot);
  if (base::Status status = balance::check(snapshot, placement); !status.ok()) return status;
  keep_a_rank_on_each_pe(map, loads_s, placement);
  report(snapshot, placement);
  return placement;
}

}  // namespace weft::mpi
