// Tells the observer of the PE of each call of MPI, with the rank and the thread that make it.
//
// Threads: those that call MPI, one at a time.
#pragma once

#include "weft/runtime/observer.h"

#include "models/mpi/virtual_ranks/running_code.h"

namespace weft::mpi {

class ReportedCalls final : public CallListener {
 public:
  // `observer`: lives as long as calls are reported.
  explicit ReportedCalls(runtime::Observer& observer) : observer_(observer) {}
  void call_began(const char* function) override;
  void call_ended() override;

 private:
  runtime::Observer& observer_;
};

}  // namespace weft::mpi
