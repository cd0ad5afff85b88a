// How many PEs may run on the processors of this one.
#pragma once

namespace weft::runtime {

// The PEs of this job that may run on a processor on which this PE may run, this one included; and the processors on which those
// PEs may run. PEs that are bound to a processor each share none, as do PEs that may run on all of as many processors.
struct ProcessorShare {
  int num_pes = 1;
  int num_processors = 1;

  // Another PE may have to leave the processor before this one runs.
  bool is_shared() const { return num_pes > num_processors; }
};

}  // namespace weft::runtime
