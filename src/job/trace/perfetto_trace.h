// The file of a trace: what a Recorder has recorded, as packets of Perfetto.
//
// A trace is a sequence of packets, and packets of several PEs may follow each other in any order. So each PE writes a part of
// its own, and the parts in a row are the trace of the job.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/status.h"

#include "job/trace/recorder.h"

namespace weft::job {

struct TracedPe {
  int pe = 0;
  std::string process;               // "PE 3, process 1234 of node7"
  std::int64_t clock_offset_ns = 0;  // added to each time
};

// Writes the part of a PE. What the tracks show:
//   - one track of the PE: a slice for each part of an entry method between waits, one for each time in which the PE had
//     nothing to do, and an instant for each message that was sent. An arrow leads from it to what the message ran;
//   - a track of each rank of MPI, or thread of it: a slice for each call;
//   - tracks of transfers, by path and kind of memory, as many as there were transfers at once;
//   - tracks of steps of load balancing, of collective operations and of checkpoints;
//   - a track of each stream of a device: a slice for each piece of work that the program has marked as an object's;
//   - a counter of how much waits for its turn on the PE; instants for elements that move.
// Fails with kInternal if the file cannot be written.
base::Status write_trace(const std::string& path, const Recorder& recorder, const TracedPe& traced);

}  // namespace weft::job
