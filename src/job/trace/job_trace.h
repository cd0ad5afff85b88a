// The trace of a job on this PE: recorded from the start of the job, written at its end, for `weft run --trace`.
//
// Threads: the PE's.
#pragma once

#include <filesystem>
#include <memory>

#include "weft/runtime/runtime.h"

#include "job/trace/recorder.h"

namespace weft::job {

class JobTrace {
 public:
  // Empty unless WEFT_TRACE names a file. WEFT_TRACE_MIB is the memory that the events of a PE may take. `has_other_hosts`: whether
  // the job has several hosts, whose clocks have nothing in common but the time of day.
  // Throws Error if WEFT_TRACE_MIB is no number from 1.
  static std::unique_ptr<JobTrace> from_environment(runtime::Runtime& runtime, bool has_other_hosts);

  // Ends the recording, and writes FILE.pe-N, or FILE if there is one PE: `weft run` puts the parts together. Prints what cannot be written, and how many events were overwritten.
  void write();

 private:
  JobTrace(runtime::Runtime& runtime, std::filesystem::path file, std::size_t memory_bytes,
           bool has_other_hosts);

  runtime::Runtime& runtime_;
  std::filesystem::path file_;
  bool has_other_hosts_;
  Recorder recorder_;
};

}  // namespace weft::job
