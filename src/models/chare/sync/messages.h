// The messages of load balancing at sync points: their header, which the values of each kind follow. sync.cpp has the protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "weft/chare/element_load.h"
#include "weft/runtime/message.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

enum class SyncKind : std::uint32_t {
  // double background load in s, std::uint64_t whether loads are set (0 or 1), Pace, std::vector<ReportedLoad>,
  // std::vector<ReportedMessages>
  kLoads,
  kPlan,        // std::uint64_t number of arrivals, std::vector<PlannedMove>
  kStays,       // nothing
  kDone,        // std::uint64_t moves, std::uint64_t bytes
  kResume,      // nothing
  kBackground,  // std::uint64_t steps without elements, double background load of them all in s
  // --- Of steps that the PEs decide together, see sync/rounds.cpp
  kWaiting,  // WaitingElements
  kBegin,  // std::uint64_t whether the loads are those of devices, whether background load is ignored (0 or 1 each), Pace of all PEs
  kTalked,    // std::uint64_t the PE of the senders, std::vector<TalkedTo>
  kPlaces,    // std::vector<std::uint64_t> elements that are on the sender's PE
  kReady,     // nothing
  kRounds,    // nothing
  kState,     // std::uint64_t round, double time in s, double speed
  kProposal,  // std::uint64_t round, std::vector<balance::GivenObject>, std::vector<balance::GivenEdge>
  kTaken,     // std::vector<std::uint64_t> elements that come to the sender's PE
  kOver,      // PeOutcome
};

// The time in ns that the PE has worked for the element since its last report. The type is one whose sums wrap around.
inline std::uint64_t nanoseconds(const ElementLoad& load) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(load.time()).count());
}

// The error of a message that does not fit the state of its receiver.
template <class... Values>
base::Status misfit(fmt::format_string<Values...> text, Values&&... values) {
  return {base::StatusCode::kCorrupt, base::format(text, std::forward<Values>(values)...)};
}

template <class... Values>
runtime::MessagePtr SyncPoints::make(const Collection& collection, std::uint64_t step, SyncKind kind,
                                     const Values&... values) {
  return runtime::Message::pack(runtime(), handler_,
                                BalancingHeader{collection.id(), step, static_cast<std::uint32_t>(kind), 0},
                                values...);
}

}  // namespace weft::chare
