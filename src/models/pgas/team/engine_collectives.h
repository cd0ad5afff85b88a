// The collectives of a team that the engine carries out (src/collective): barriers, and those of data whose
// size all ranks know, if no function of the program takes part.
//
// A call is one object, which sets the future and frees itself when it is over, in the arrival of the last
// message. Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

#include "weft/base/error.h"
#include "weft/memory/buffer.h"
#include "weft/pgas/element_combine.h"
#include "weft/runtime/future.h"
#include "weft/runtime/reduction.h"

#include "collective/run.h"
#include "models/pgas/team/team_state.h"

namespace weft::pgas {

// This rank begins its next collective. Returns the number of its call.
inline std::uint64_t begin_call(TeamState& team, const CollectiveType& type) {
  team.watch.note();
  return engine_number(team.exchange.begin(type), type);
}

// One call of the engine by a rank of a team.
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

// All ranks give the same, but for the function.
struct EngineOperation {
  CollectiveKind kind = CollectiveKind::kBarrier;
  int root = -1;  // none if it is negative
  std::size_t size_bytes = 0;
  std::uint64_t type = 0;       // of the data
  ElementCombine combine = {};  // of a reduction; it does not throw
  runtime::Reducer reducer = runtime::Reducer::kSum;
};

runtime::Future<> start_barrier(TeamState& team);
// Returns when all ranks have arrived, or false if the job ends first. REQUIRES: Scheduler::may_progress(),
// or a team of one.
bool wait_in_barrier(TeamState& team);
// Of up to Team::kMostFixedBytes. Sets `result`, as a std::optional for kReduce.
void start_value(TeamState& team, const EngineOperation& what, std::span<const std::byte> mine,
                 runtime::FutureState& result);
// Whether buffers of that size go through the engine. All ranks take the same way, whichever memory they
// have: device memory is copied to the host and back.
bool takes_buffers(const TeamState& team, const EngineOperation& what);
// REQUIRES: takes_buffers(). `values` has its place.
runtime::Future<> start_buffer(TeamState& team, const EngineOperation& what, const memory::Buffer& values);

}  // namespace weft::pgas
