#include "ranks/rank_placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "weft/balance/snapshot.h"

#include "balance/strategy.h"
#include "balance/strategy_table.h"
#include "balance/summary.h"
#include "base/format.h"

namespace weft::mpi {

namespace {

struct Settings {
  std::string strategy = "none";
  bool is_verbose = false;
};
Settings settings;

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
  if (!settings.is_verbose) return;
  const balance::Summary summary = balance::summarize(snapshot, placement);
  std::fputs(base::format("weft: {} moves {} of {} ranks: imbalance {:.3f} before, {:.3f} after\n",
                          settings.strategy, summary.moves, snapshot.objects.size(), summary.imbalance_before,
                          summary.imbalance_after)
                 .c_str(),
             stderr);
}

}  // namespace

void read_balance_settings() {
  const char* const name = std::getenv("WEFT_LB");
  const char* const verbose = std::getenv("WEFT_LB_VERBOSE");
  settings = {.strategy = name == nullptr ? "none" : name,
              .is_verbose = verbose != nullptr && std::string_view(verbose) == "1"};
}

bool balances_loads() { return settings.strategy != "none"; }

namespace {

// The rank that goes back to an empty PE: rather one that leaves another rank where it shall be, then the lightest.
int rank_to_return(const std::vector<int>& candidates, const std::vector<double>& loads_s,
                   const std::vector<int>& pe_of_rank, const std::vector<int>& num_ranks) {
  const auto key = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    const bool is_alone = num_ranks[static_cast<std::size_t>(pe_of_rank[index])] == 1;
    return std::pair(is_alone, loads_s[index]);
  };
  int best = candidates.front();
  for (const int rank : candidates) {
    if (key(rank) < key(best)) best = rank;
  }
  return best;
}

}  // namespace

void keep_a_rank_on_each_pe(const RankMap& map, const std::vector<double>& loads_s,
                            std::vector<int>& pe_of_rank) {
  std::vector<int> num_ranks(static_cast<std::size_t>(map.num_pes()));
  for (const int pe : pe_of_rank) ++num_ranks[static_cast<std::size_t>(pe)];
  // Each turn gives one more rank its PE of before, so this ends.
  for (;;) {
    const auto empty = std::ranges::find(num_ranks, 0);
    if (empty == num_ranks.end()) return;
    const auto pe = static_cast<int>(empty - num_ranks.begin());
    const int rank = rank_to_return(map.ranks_on(pe), loads_s, pe_of_rank, num_ranks);
    int& place = pe_of_rank[static_cast<std::size_t>(rank)];
    --num_ranks[static_cast<std::size_t>(place)];
    ++*empty;
    place = pe;
  }
}

base::Result<std::vector<int>> balanced_places(const RankMap& map, const std::vector<double>& loads_s) {
  static std::unique_ptr<balance::Strategy> strategy;
  if (strategy == nullptr) {
    auto made = balance::make_strategy(settings.strategy);
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
