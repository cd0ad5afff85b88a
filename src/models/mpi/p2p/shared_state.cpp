#include "models/mpi/p2p/shared_state.h"

#include <algorithm>
#include <utility>

namespace weft::mpi {

namespace {

// The windows of all peers together may fill this much of a PE's memory with messages that no receive has matched.
constexpr std::int64_t kAllWindowsBytes = std::int64_t{512} << 20;
constexpr std::int64_t kLargestWindowBytes = std::int64_t{16} << 20;
constexpr std::int64_t kSmallestWindowBytes = std::int64_t{256} << 10;

std::int64_t window_for(int num_pes) {
  return std::clamp(kAllWindowsBytes / num_pes, kSmallestWindowBytes, kLargestWindowBytes);
}

}  // namespace

SharedState::SharedState(RankMap map, int pe)
    : map_(std::move(map)),
      pe_(pe),
      window_bytes_(window_for(map_.num_pes())),
      destinations_(static_cast<std::size_t>(map_.num_ranks())),
      windows_(static_cast<std::size_t>(map_.num_pes()),
               runtime::CreditWindow{{window_bytes_}, runtime::OwedCredit(share_bytes())}),
      outsiders_(map_.num_ranks()) {
  windows_.emplace_back();
  for (int rank = 0; rank < map_.num_ranks(); ++rank)
    destinations_[static_cast<std::size_t>(rank)].pe = map_.pe_of(rank);
}

int SharedState::number_of(const ProcessName& name) {
  const int number = outsiders_.number_of(name);
  while (static_cast<std::size_t>(number) >= destinations_.size())
    destinations_.push_back({.here = nullptr, .pe = map_.num_pes()});
  return number;
}

void SharedState::replace_map(RankMap map) {
  map_ = std::move(map);
  for (int rank = 0; rank < map_.num_ranks(); ++rank)
    destinations_[static_cast<std::size_t>(rank)] = {.here = nullptr, .pe = map_.pe_of(rank)};
  teams_.clear();
}

std::weak_ptr<LocalTeam>& SharedState::team(std::uint64_t context) {
  if (teams_.size() >= most_teams_) {
    std::erase_if(teams_, [](const auto& entry) { return entry.second.expired(); });
    most_teams_ = 2 * teams_.size() + 16;
  }
  return teams_[context];
}

}  // namespace weft::mpi
