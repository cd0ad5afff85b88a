// The PE that has made a collection, in a step that the PEs decide together: it counts, and knows no element's load. sync/rounds.cpp
// has the protocol.
#include <memory>
#include <string>

#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

base::Status SyncPoints::on_count(Collection& collection, const BalancingHeader& header, int from_pe,
                                  Pup& p) {
  LocalSync& here = local(collection);
  if (decider(collection) != runtime().pe()) return misfit("another PE counts");
  if (header.number != here.decided_step) {
    return misfit("a count of step {}, not {}", header.number, here.decided_step);
  }
  if (here.counting == nullptr) {
    here.counting = std::make_unique<DistributedStep>(collection.shape().size(), runtime().num_pes());
  }
  DistributedStep& counting = *here.counting;
  base::Status status;
  if (static_cast<SyncKind>(header.kind) == SyncKind::kWaiting) {
    WaitingElements waiting;
    p | waiting;
    status = counting.add(from_pe, waiting);
    if (status.ok() && counting.is_complete()) {
      const std::uint64_t is_by_device_time = counting.is_by_device_time() ? 1 : 0;
      const std::uint64_t ignores_background = counting.ignores_background() ? 1 : 0;
      chares_.parts_->send_to_all(make(collection, header.number, SyncKind::kBegin, is_by_device_time,
                                       ignores_background, counting.pace()));
    }
  } else if (static_cast<SyncKind>(header.kind) == SyncKind::kReady) {
    status = counting.ready(from_pe);
    if (status.ok() && counting.are_all_ready()) {
      chares_.parts_->send_to_all(make(collection, header.number, SyncKind::kRounds));
    }
  } else {
    PeOutcome outcome;
    p | outcome;
    status = counting.over(from_pe, outcome);
    if (status.ok() && counting.is_over()) end_step(collection);
  }
  return status;
}

}  // namespace weft::chare
