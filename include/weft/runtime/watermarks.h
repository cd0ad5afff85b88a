// The watermarks of flow control: how much may be on its way from one PE to another, or wait there, before the sender waits.
// docs/decisions/flow-control.md has the reasons.
#pragma once

#include <cstdint>

namespace weft::runtime {

// By peer, in bytes of messages that were sent to it and that it has not begun to handle. A message counts its payload
// and FlowControl::kMessageBytes.
struct Watermarks {
  // Past it, an await of room, or of a call without a result in Python, waits.
  std::int64_t first_bytes = 0;
  // Past it, a call waits inside the call and moves communication forward.
  std::int64_t second_bytes = 0;
  // Past it, a call throws Error. A call gets there only if waiting cannot help: the PEs wait for one another, or the
  // messages wait for the caller itself.
  std::int64_t third_bytes = 0;

  // The watermarks for a job, from the memory of this PE's host.
  static Watermarks for_job(int num_pes, int local_pes);
};

}  // namespace weft::runtime
