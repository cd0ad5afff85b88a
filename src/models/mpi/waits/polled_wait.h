// PolledWait: a call of MPI that polls memory of other processes, and can say what it waits for.
//
// Threads: one at a time, as all of MPI.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "weft/runtime/wait_list.h"

#include "base/format.h"
#include "models/mpi/p2p/point_to_point.h"

namespace weft::mpi {

// A rank of MPI_COMM_WORLD.
inline runtime::NamedParty party_of(int rank) {
  return {{runtime::Party::kRanks, static_cast<std::uint64_t>(rank)}, base::format("rank {}", rank)};
}

// While it lives, reports of the rank's waits have what `describe` returns; the rank itself is filled in.
class PolledWait {
 public:
  PolledWait(PointToPoint& engine, std::function<runtime::Wait()> describe)
      : engine_(engine), describe_(std::move(describe)) {
    engine_.set_polled_wait(&describe_);
  }
  ~PolledWait() { engine_.set_polled_wait(nullptr); }
  PolledWait(const PolledWait&) = delete;
  PolledWait& operator=(const PolledWait&) = delete;

 private:
  PointToPoint& engine_;
  const std::function<runtime::Wait()> describe_;
};

}  // namespace weft::mpi
