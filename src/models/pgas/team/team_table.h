// The teams of one PE, by number, and the handlers of their messages.
//
// A message of a team that this PE has not made yet waits until it has. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/pgas/team_id.h"
#include "weft/pgas/world.h"
#include "weft/runtime/runtime.h"

#include "models/pgas/team/early_messages.h"
#include "models/pgas/team/team_state.h"

namespace weft::pgas {

class TeamTable {
 public:
  static constexpr runtime::HandlerId kNumHandlers = 1;

  // `call_handler`: of the calls of functions.
  TeamTable(runtime::Runtime& runtime, runtime::HandlerId first_handler, runtime::HandlerId call_handler);

  World& world() { return world_; }
  // A number for a team whose rank 0 is this PE. Each is given once.
  std::uint32_t next_number() { return ++last_number_; }
  // Makes a team that this PE is a member of. Messages that wait for it are handled in later turns.
  TeamState& add(TeamId id, std::vector<int> pes);
  // Null if this PE has not made it.
  TeamState* find(TeamId id);
  // The team of a message. Null if it is not made yet: the message then waits. Throws Error(kCorrupt) if no PE of the job
  // can have given the number, or if the sender is no member.
  TeamState* find_or_wait(TeamId id, runtime::MessagePtr& message, bool from_poster = false);
  // Whether a PE of the job can have given that number. REQUIRES: this PE has not made the team.
  bool may_exist(TeamId id) const {
    return id.leader_pe < static_cast<std::uint32_t>(runtime_.num_pes()) && id.number != 0;
  }
  // A message that names an object of a team that this PE has not made. REQUIRES: may_exist(id).
  void wait_for(TeamId id, runtime::MessagePtr message) { waiting_[id].keep(std::move(message)); }
  // The messages that wait for teams.
  std::size_t num_waiting() const;
  // The messages that wait for objects of teams.
  std::size_t num_waiting_for_objects() const;

 private:
  struct Hash {
    std::size_t operator()(const TeamId& id) const {
      const std::uint64_t both = std::uint64_t{id.leader_pe} << 32 | id.number;
      return static_cast<std::size_t>(both * 0x9e3779b97f4a7c15);
    }
  };

  TeamState& add_world();
  void on_part(runtime::MessagePtr message);
  runtime::Posting post_part(runtime::MessagePtr& message, std::span<runtime::ReceiveBuffer> receive_buffers);
  void on_dropped(runtime::Message& message);

  runtime::Runtime& runtime_;
  TeamHandlers handlers_;
  std::uint32_t last_number_ = 0;
  std::unordered_map<TeamId, std::unique_ptr<TeamState>, Hash> teams_;
  std::unordered_map<TeamId, EarlyMessages, Hash> waiting_;
  World world_;
};

}  // namespace weft::pgas
