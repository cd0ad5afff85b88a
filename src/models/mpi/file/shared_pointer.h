// SharedFilePointer: the pointer of a file that its processes share, a word of memory at the first of them.
//
// Processes of its host change it by an instruction of their CPU. Those of other hosts send messages, which the first process answers in
// its calls of MPI. Threads: the PE's.
#pragma once

#include <cstdint>

#include "weft/rma/global_memory.h"
#include "weft/rma/segment.h"
#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"

namespace weft::mpi {

class SharedFilePointer {
 public:
  // Collective. Throws TransferFailed on all processes if one fails.
  static runtime::Task<SharedFilePointer> make(Ref<Communicator> communicator);

  // Adds to the pointer, and returns what it was. Waits for the first process.
  runtime::Task<std::int64_t> advance(std::int64_t change) const;
  runtime::Task<std::int64_t> get() const { return advance(0); }
  // REQUIRES: the first process calls it.
  runtime::Task<> set(std::int64_t value) const;

 private:
  rma::GlobalMemory* memory_ = nullptr;
  rma::Segment segment_;  // of the first process
  rma::GlobalPtr<std::int64_t> word_;
};

}  // namespace weft::mpi
