// The members of a Team, and split().
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/pgas/team.h"

#include "base/format.h"
#include "models/pgas/team/team_state.h"
#include "models/pgas/team/team_table.h"
#include "runtime/save_refusal.h"

namespace weft::pgas {

// --- Members

int Team::rank() const { return state_->members.rank(); }
int Team::size() const { return state_->members.size(); }
TeamId Team::id() const { return state_->members.id(); }
int Team::rank_of_pe(int pe) const { return state_->members.rank_of(pe); }
std::vector<int> Team::members() const { return state_->members.pes(); }
World& Team::world() const { return state_->table.world(); }
runtime::Runtime& Team::runtime() const { return state_->runtime; }

int Team::pe_of(int rank) const {
  expect_rank(rank);
  return state_->members.pe_of(rank);
}

void Team::expect_rank(int rank) const {
  if (state_->members.has_rank(rank)) return;
  throw base::Error(base::StatusCode::kOutOfRange,
                    base::format("rank {} does not exist; this team has ranks 0 to {}", rank, size() - 1));
}

void Team::expect_merging(runtime::Reducer reducer) {
  if (reducer < runtime::Reducer::kGather) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      "this reducer merges no values: use allgather() for a list of the values of all ranks, and "
      "allreduce<&merge>() for a function of the program");
}

void Team::pup(base::Pup& p) {
  bool is_team = state_ != nullptr;
  p | is_team;
  TeamId id = is_team && !p.is_unpacking() ? this->id() : TeamId();
  if (p.is_packing() && id != TeamId()) {
    runtime::SaveRefusal::check([id] {
      return base::format(
          "the team {} of PE {}, which cannot be saved: a later job has other teams. Keep no team in what is "
          "saved, and split the world anew after it is restored",
          id.number, id.leader_pe);
    });
  }
  if (is_team) p | id;
  if (!p.is_unpacking()) return;
  auto& runtime = *static_cast<runtime::Runtime*>(p.context());
  state_ = is_team ? world_of(runtime).state()->table.find(id) : nullptr;
  if (is_team && state_ == nullptr) {
    throw base::Error(
        base::StatusCode::kNotFound,
        base::format("PE {} got the team {} of PE {}, of which it is no member or which it has not "
                     "made yet; send a team after all of its members have awaited split()",
                     runtime.pe(), id.number, id.leader_pe));
  }
}

// --- Split

namespace {

// The contribution of a rank to split().
struct SplitEntry {
  std::int64_t colour = kNoTeam;
  std::int64_t key = 0;
  std::uint32_t number = 0;  // for the team, if this rank leads it
  std::uint32_t rank = 0;
};

// The entries of a colour, in the order of the new ranks.
std::vector<SplitEntry> entries_of(std::vector<SplitEntry> all, std::int64_t colour) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank].rank = static_cast<std::uint32_t>(rank);
  std::erase_if(all, [colour](const SplitEntry& entry) { return entry.colour != colour; });
  std::ranges::sort(all, {}, [](const SplitEntry& entry) { return std::pair(entry.key, entry.rank); });
  return all;
}

runtime::Task<> run_split(Team parent, SplitEntry mine, runtime::Future<Team> result) {
  std::exception_ptr error;
  Team team;
  try {
    std::vector<SplitEntry> all = co_await parent.allgather(mine);
    if (mine.colour != kNoTeam) {
      const std::vector<SplitEntry> entries = entries_of(std::move(all), mine.colour);
      std::vector<int> pes;
      for (const SplitEntry& entry : entries) pes.push_back(parent.pe_of(static_cast<int>(entry.rank)));
      const TeamId id{static_cast<std::uint32_t>(pes.front()), entries.front().number};
      team = Team(&parent.state()->table.add(id, std::move(pes)));
    }
  } catch (...) {
    error = std::current_exception();
  }
  error ? result.set_error(error) : result.set(team);
}

}  // namespace

runtime::Future<Team> Team::split(std::int64_t colour, std::int64_t key) const {
  runtime::Future<Team> result(runtime());
  const SplitEntry mine{colour, key, state_->table.next_number(), 0};
  runtime().spawn(run_split(*this, mine, result), "a split of a team");
  return result;
}

}  // namespace weft::pgas
