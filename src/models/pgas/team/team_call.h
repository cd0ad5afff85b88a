// TeamCall: one call of the engine by a rank of a team. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>

#include "weft/base/error.h"

#include "collective/run.h"
#include "models/pgas/team/team_state.h"

namespace weft::pgas {

// This rank begins its next collective. Returns the number of its call.
inline std::uint64_t begin_call(TeamState& team, const CollectiveType& type) {
  team.watch.note();
  return engine_number(team.exchange.begin(type), type);
}

class TeamCall : public collective::Run {
 public:
  TeamCall(TeamState& team, CollectiveKind kind, const collective::Call& call)
      : Run(*team.group, call), team_(team), kind_(kind) {}

  TeamState& team() const { return team_; }
  // Why it has failed. REQUIRES: has_failed().
  std::exception_ptr failure() const {
    if (error() != nullptr) return error();
    return std::make_exception_ptr(
        base::Error(base::StatusCode::kPeerFailed,
                    "a rank on which this one depends has failed in a collective operation"));
  }

 private:
  std::exception_ptr wrong_size(int from, std::size_t arrived_bytes,
                                std::size_t awaited_bytes) const override {
    return pgas::wrong_size(kind_, from, arrived_bytes, team_.members.rank(), awaited_bytes);
  }

  TeamState& team_;
  const CollectiveKind kind_;
};

}  // namespace weft::pgas
