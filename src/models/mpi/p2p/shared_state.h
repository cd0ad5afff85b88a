// SharedState: state that the engines of the ranks on one PE share: where each rank is, and the windows of the peer PEs.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "machine/message_sizes.h"
#include "models/mpi/losses/troubles.h"
#include "models/mpi/outside/outsiders.h"
#include "models/mpi/p2p/rank_map.h"
#include "runtime/message/credit_window.h"

namespace weft::mpi {

class Communicator;
class LocalTeam;
class PointToPoint;

class SharedState {
 public:
  SharedState(RankMap map, int pe);

  // The way to a rank.
  struct Destination {
    PointToPoint* here = nullptr;  // the rank's engine if it is on this PE
    int pe = 0;
  };

  // The ranks have moved. The windows stay, because they belong to PEs. REQUIRES: no message is under way, and the engines of the
  // ranks are set anew.
  void replace_map(RankMap map);

  const RankMap& map() const { return map_; }
  int pe() const { return pe_; }
  // REQUIRES: map().has(rank), or the number of an outsider: it has a window without room, so that no message goes there as to a PE.
  const Destination& destination(int rank) const { return destinations_[static_cast<std::size_t>(rank)]; }
  // --- Processes of other jobs
  const Outsiders& outsiders() const { return outsiders_; }
  Outsiders& outsiders() { return outsiders_; }
  bool is_outside(int number) const { return outsiders_.is_outside(number); }
  // See Outsiders::number_of().
  int number_of(const ProcessName& name);
  // The member in groups of the engine of collectives: a PE, or a number that is no PE.
  int member_number(int rank) const {
    return is_outside(rank) ? map_.num_pes() + rank - map_.num_ranks() : map_.pe_of(rank);
  }

  // --- Processes that are lost
  const Troubles& troubles() const { return troubles_; }
  Troubles& troubles() { return troubles_; }
  // Messages to that PE take a way that asks troubles().
  void close_window(int pe) { window(pe).room.bytes = 0; }

  // Whether there is that rank, and it is on that PE: for what a peer claims.
  bool is_on(int rank, int pe) const {
    return static_cast<std::uint32_t>(rank) < destinations_.size() && destination(rank).pe == pe;
  }
  void set_engine(int rank, PointToPoint* engine) {
    destinations_[static_cast<std::size_t>(rank)].here = engine;
  }

  // The team of the ranks that are here, of the communicator with that context: see LocalTeam.
  std::weak_ptr<LocalTeam>& team(std::uint64_t context);

  // The communicators of all ranks that are here, for reports. They enter themselves, and leave it when they go.
  const std::shared_ptr<std::set<const Communicator*>>& communicators() const { return communicators_; }

  // The window for messages between this PE and `pe`. It bounds the memory that they take until a receive has matched them.
  runtime::CreditWindow& window(int pe) { return windows_[static_cast<std::size_t>(pe)]; }
  std::int64_t window_bytes() const { return window_bytes_; }
  // The bytes of the window that a message in a block, or a direct one, takes.
  static std::int64_t charge_of(std::size_t size_bytes) {
    return static_cast<std::int64_t>(size_bytes) + machine::kKeptMessageBytes;
  }
  // A message with that charge has been matched. Returns the room that the PE must be told of; 0 for none yet.
  std::uint64_t give_back(int pe, std::int64_t charge) {
    runtime::CreditWindow& from = window(pe);
    if (pe == pe_) {
      from.room.bytes += charge;
      return 0;
    }
    if (!from.owed.add(charge)) [[likely]]
      return 0;
    const auto room_bytes = static_cast<std::uint64_t>(from.owed.unreported_bytes(share_bytes()));
    from.owed.restart(share_bytes());
    return room_bytes;
  }

 private:
  // The bytes of returned room that are worth a report to the peer.
  std::int64_t share_bytes() const { return window_bytes_ / 4; }

  RankMap map_;
  int pe_;
  std::int64_t window_bytes_;
  std::vector<Destination> destinations_;       // of the ranks, then of the outsiders
  std::vector<runtime::CreditWindow> windows_;  // of the PEs, then that of all outsiders
  Outsiders outsiders_;
  Troubles troubles_;
  std::map<std::uint64_t, std::weak_ptr<LocalTeam>> teams_;
  const std::shared_ptr<std::set<const Communicator*>> communicators_ =
      std::make_shared<std::set<const Communicator*>>();
  std::size_t most_teams_ = 16;  // entries before those of teams that have gone are erased
};

}  // namespace weft::mpi
