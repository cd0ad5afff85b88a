// Counting of messages for quiescence detection. Private to the message layer.
#pragma once

#include "weft/runtime/message.h"
#include "weft/runtime/scheduler.h"

#include "runtime/tree/spanning_tree.h"

namespace weft::runtime {

inline bool is_counted(const Envelope& envelope) { return (envelope.flags & kControlFlag) == 0; }

// Counts a lost message as processed: `pe` will not handle it. A lost broadcast that `pe` should have
// forwarded counts for the PEs below `pe` too.
inline void count_lost(Scheduler& scheduler, const Envelope& envelope, int pe) {
  if (!is_counted(envelope)) return;
  int count = 1;
  if ((envelope.flags & kBroadcastFlag) != 0) {
    count = SpanningTree(static_cast<int>(envelope.root_pe), pe, scheduler.num_pes(), scheduler.host_groups())
                .num_in_subtree();
  }
  for (int i = 0; i < count; ++i) scheduler.count_processed();
}

}  // namespace weft::runtime
