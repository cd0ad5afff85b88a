#include "models/mpi/virtual_ranks/virtual_rank.h"

namespace weft::mpi {

void VirtualRank::wait() {
  waits_ = true;
  suspend_until_run();
}

void VirtualRank::yield() {
  waits_ = true;
  is_queued_ = true;
  scheduler_->post_for_next_turn(this);
  suspend_until_run();
}

void VirtualRank::suspend_until_run() {
  suspend();
  while (visitor_ != nullptr) [[unlikely]] {
    (*visitor_)();
    suspend();
  }
}

void VirtualRank::visit(const std::function<void()>& function) {
  if (!waits_ || !has_begun_) return;
  VirtualRank* const before = current_;
  set_current(this);
  visitor_ = &function;
  resume();
  visitor_ = nullptr;
  set_current(before);
}

void VirtualRank::run() {
  waits_ = false;
  has_begun_ = true;
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
