#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

void VirtualRank::wait() {
  waits_ = true;
  suspend();
}

void VirtualRank::yield() {
  waits_ = true;
  is_queued_ = true;
  scheduler_->post_for_next_turn(this);
  suspend();
}

void VirtualRank::run() {
  waits_ = false;
  is_queued_ = false;
  set_current(this);
  resume();
}

// At the end of the job the queue is dropped. The ranks that live on are run by their process.
void VirtualRank::on_turn(runtime::Work* self, runtime::Runtime& /*runtime*/, runtime::WorkAction action) {
  auto* const rank = static_cast<VirtualRank*>(self);
  if (action == runtime::WorkAction::kRun) return rank->run();
  rank->is_queued_ = false;
}

}  // namespace weft::mpi
