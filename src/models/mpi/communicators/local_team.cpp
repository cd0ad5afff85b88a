#include "models/mpi/communicators/local_team.h"

#include <algorithm>
#include <utility>

namespace weft::mpi {

// --- TeamRound

void TeamRound::release() {
  is_active_ = false;
  for (Released* const one : std::exchange(waiting_, {})) one->scheduler_.post(one);
  for (VirtualRank* const rank : waiting_ranks_) rank->wake();
  waiting_ranks_.clear();
}

TeamRound::Released::~Released() { std::erase(round_.waiting_, this); }

// --- LocalTeam

std::shared_ptr<LocalTeam> LocalTeam::find(PointToPoint& engine, std::uint64_t context,
                                           const Members& members) {
  if (!engine.shared().map().shares_pes()) [[likely]]
    return nullptr;
  std::weak_ptr<LocalTeam>& known = engine.shared().team(context);
  if (auto team = known.lock()) return team;
  auto team = std::make_shared<LocalTeam>(engine, members);
  if (team->leaders()->size() == members.size()) return nullptr;
  known = team;
  return team;
}

LocalTeam::LocalTeam(const PointToPoint& engine, const Members& members) : pe_places_(members.size()) {
  const RankMap& map = engine.shared().map();
  std::vector<int> place_of_pe(static_cast<std::size_t>(map.num_pes()), -1);
  auto leaders = std::make_shared<Members>();
  int last_place = -1;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const int pe = map.pe_of(members[i]);
    int& place = place_of_pe[static_cast<std::size_t>(pe)];
    if (place < 0) {
      place = static_cast<int>(leaders->size());
      leaders->push_back(members[i]);
    } else if (place != last_place) {
      keeps_order_ = false;
    }
    last_place = place;
    pe_places_[i] = place;
    if (pe == engine.shared().pe()) ranks_.push_back(static_cast<int>(i));
  }
  leaders_ = std::move(leaders);
  pe_place_ = place_of_pe[static_cast<std::size_t>(engine.shared().pe())];
  leader_engine_ = engine.shared().destination((*leaders_)[static_cast<std::size_t>(pe_place_)]).here;
}

std::size_t LocalTeam::place_of(int rank) const {
  return static_cast<std::size_t>(std::lower_bound(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

std::shared_ptr<TeamRound> LocalTeam::arrive(int tag, int rank, TeamMember& member) {
  std::shared_ptr<TeamRound>* round = nullptr;
  std::shared_ptr<TeamRound>* unused = nullptr;
  for (std::shared_ptr<TeamRound>& one : rounds_) {
    if (one->is_active_ && one->tag_ == tag && !one->is_complete()) round = &one;
    if (!one->is_active_ && one.use_count() == 1) unused = &one;
  }
  if (round == nullptr) {
    round = unused != nullptr ? unused : &rounds_.emplace_back(std::make_shared<TeamRound>());
    TeamRound& fresh = **round;
    fresh.is_active_ = true;
    fresh.tag_ = tag;
    fresh.num_arrived_ = 0;
    fresh.members_.assign(ranks_.size(), nullptr);
  }
  TeamRound& joined = **round;
  joined.members_[place_of(rank)] = &member;
  ++joined.num_arrived_;
  return *round;
}

}  // namespace weft::mpi
