// The messages of load balancing at sync points: their header, which the values of each kind follow. sync.cpp has the protocol.
#pragma once

#include <cstdint>

#include "weft/runtime/message.h"

#include "models/chare/parts.h"
#include "models/chare/sync_points.h"

namespace weft::chare {

enum class SyncKind : std::uint32_t {
  kLoads,   // std::vector<ReportedLoad>
  kPlan,    // std::uint64_t number of arrivals, std::vector<PlannedMove>
  kStays,   // nothing
  kDone,    // std::uint64_t moves, std::uint64_t bytes
  kResume,  // nothing
};

struct SyncPoints::Header {
  std::uint64_t collection = 0;
  std::uint64_t step = 0;
  SyncKind kind = SyncKind::kLoads;
  std::uint32_t reserved = 0;
};

template <class... Values>
runtime::MessagePtr SyncPoints::make(const Collection& collection, std::uint64_t step, SyncKind kind,
                                     const Values&... values) {
  return runtime::Message::pack(runtime(), chares_.first_handler_ + kSync,
                                Header{collection.id(), step, kind, 0}, values...);
}

}  // namespace weft::chare
