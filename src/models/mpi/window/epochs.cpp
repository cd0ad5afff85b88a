// Epochs: fences, locks, flushes, and post, start, complete, wait.
#include <algorithm>
#include <atomic>
#include <utility>

#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/process.h"
#include "models/mpi/waits/polled_wait.h"
#include "models/mpi/window/window.h"

namespace weft::mpi {

namespace {

Error no_epoch(std::string_view which) {
  return {MPI_ERR_RMA_SYNC, base::format("no epoch of {} is open", which)};
}
Error open_epoch(std::string_view which) {
  return {MPI_ERR_RMA_SYNC, base::format("an epoch of {} is open; end it before", which)};
}

}  // namespace

// --- The end of accesses

Error Window::end_accesses(std::optional<int> rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const auto is_over = [&] { return rank ? target(*rank).num_outstanding == 0 : num_outstanding_ == 0; };
  if (is_over()) [[likely]] {
    give_progress();
  } else {
    this_process().wait_until(is_over);
  }
  if (errors_.empty()) [[likely]]
    return {};
  return take_error(rank);
}

Error Window::take_error(std::optional<int> rank) {
  const auto found = rank ? errors_.find(*rank) : errors_.begin();
  if (found == errors_.end()) return {};
  Error error = std::move(found->second);
  if (rank) {
    errors_.erase(found);
  } else {
    errors_.clear();
  }
  return error;
}

void Window::move_forward() { this_process().progress(); }

Error Window::flush(int rank) {
  const Target& to = target(rank);
  if (!has_locked_all_ && to.lock == Target::Lock::kNone) [[unlikely]]
    return no_epoch("MPI_Win_lock or MPI_Win_lock_all with that rank");
  return end_accesses(rank);
}

Error Window::flush_all() {
  if (!has_locked_all_ && !has_lock()) [[unlikely]]
    return no_epoch("MPI_Win_lock or MPI_Win_lock_all");
  return end_accesses(std::nullopt);
}

bool Window::has_lock() const {
  return std::ranges::any_of(targets_, [](const Target& one) { return one.lock != Target::Lock::kNone; });
}

void Window::sync() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  this_process().progress();
}

// --- Fences

Error Window::fence(bool has_successor) {
  if (has_locked_all_) return open_epoch("MPI_Win_lock_all");
  if (has_lock()) return open_epoch("MPI_Win_lock");
  if (started_) return open_epoch("MPI_Win_start");
  if (exposed_) return open_epoch("MPI_Win_post");
  Error error = end_accesses(std::nullopt);
  Process& process = this_process();
  process.run(barrier_in_teams(communicator_->next_collective_contexts().local));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  is_fenced_ = has_successor;
  return error;
}

// --- Locks

void Window::acquire_lock(int rank, bool is_exclusive) {
  Target& to = of(rank);
  const int own = communicator_->rank();
  Process& process = this_process();
  if (to.control == nullptr) {
    return process.run(
        acquire_remotely(global_memory(), to.access_word, AccessWord::share(is_exclusive, own)));
  }
  if (AccessWord::try_lock(*to.control, is_exclusive, own)) [[likely]]
    return;
  const PolledWait wait(engine(), [&] { return wait_for_lock(rank, is_exclusive); });
  process.poll_until([&] { return AccessWord::try_lock(*to.control, is_exclusive, own); });
}

runtime::Wait Window::wait_for_lock(int rank, bool is_exclusive) const {
  const std::uint64_t word = std::atomic_ref(target(rank).control->access).load(std::memory_order_relaxed);
  const int holder = AccessWord::holder(word);
  runtime::Wait wait;
  std::string held_by = word == 1 ? "another rank shares" : base::format("{} ranks share", word);
  if (word == 0) held_by = "has just become free";
  if (holder >= 0) held_by = "a rank that the window does not have holds";  // the word is a claim
  if (communicator_->has_peer(holder)) {
    wait.on.push_back(party_of(communicator_->world_rank_of_peer(holder)));
    held_by = base::format("rank {} holds", holder);
  }
  wait.what = base::format("{} lock of rank {} of {}, which {}", is_exclusive ? "exclusive" : "shared", rank,
                           name().empty() ? "a window without a name" : name(), held_by);
  return wait;
}

runtime::Task<> Window::acquire_remotely(rma::GlobalMemory& memory, rma::GlobalPtr<std::uint64_t> word,
                                         std::uint64_t share) {
  const bool is_exclusive = share >= AccessWord::kExclusive;
  std::uint64_t seen = 0;
  for (;;) {
    const std::uint64_t wanted = seen + share;
    const std::uint64_t before = co_await memory.compare_exchange(word, seen, wanted);
    if (before == seen) co_return;
    seen = before;
    while (!AccessWord::is_free(seen, is_exclusive)) {
      co_await runtime::yield_now(memory.runtime());
      seen = co_await memory.atomic_load(word);
    }
  }
}

void Window::release_lock(int rank) {
  Target& to = of(rank);
  const Target::Lock held = std::exchange(to.lock, Target::Lock::kNone);
  if (held == Target::Lock::kUnchecked) return;
  const bool is_exclusive = held == Target::Lock::kExclusive;
  const int own = communicator_->rank();
  if (to.control != nullptr) return AccessWord::unlock(*to.control, is_exclusive, own);
  this_process().run(release_remotely(global_memory(), to.access_word, AccessWord::share(is_exclusive, own)));
}

runtime::Task<> Window::release_remotely(rma::GlobalMemory& memory, rma::GlobalPtr<std::uint64_t> word,
                                         std::uint64_t share) {
  co_await memory.fetch_add(word, std::uint64_t{0} - share);
}

Error Window::lock(int rank, bool is_exclusive, bool is_checked) {
  Target& to = of(rank);
  if (to.lock != Target::Lock::kNone || has_locked_all_) return open_epoch("a lock of that rank");
  if (started_) return open_epoch("MPI_Win_start");
  if (is_checked) acquire_lock(rank, is_exclusive);
  const Target::Lock held = is_exclusive ? Target::Lock::kExclusive : Target::Lock::kShared;
  to.lock = is_checked ? held : Target::Lock::kUnchecked;
  return {};
}

Error Window::unlock(int rank) {
  if (has_locked_all_ || target(rank).lock == Target::Lock::kNone)
    return no_epoch("MPI_Win_lock with that rank");
  Error error = end_accesses(rank);
  release_lock(rank);
  return error;
}

Error Window::lock_all(bool is_checked) {
  if (has_locked_all_) return open_epoch("MPI_Win_lock_all");
  if (started_) return open_epoch("MPI_Win_start");
  if (has_lock()) return open_epoch("MPI_Win_lock");
  for (int rank = 0; rank < num_targets(); ++rank) {
    if (is_checked) acquire_lock(rank, false);
    of(rank).lock = is_checked ? Target::Lock::kShared : Target::Lock::kUnchecked;
  }
  has_locked_all_ = true;
  return {};
}

Error Window::unlock_all() {
  if (!has_locked_all_) return no_epoch("MPI_Win_lock_all");
  Error error = end_accesses(std::nullopt);
  for (int rank = 0; rank < num_targets(); ++rank) release_lock(rank);
  has_locked_all_ = false;
  return error;
}

// --- Post, start, complete, wait

Error Window::start_epoch(std::vector<int> ranks) {
  if (started_) return open_epoch("MPI_Win_start");
  if (has_locked_all_) return open_epoch("MPI_Win_lock_all");
  if (has_lock()) return open_epoch("MPI_Win_lock");
  std::vector<Ref<ReceiveRequest>> posts;
  for (const int rank : ranks) posts.push_back(receive(rank, kPostTag, {}));
  for (const auto& post : posts) this_process().wait(*post);
  for (const int rank : ranks) of(rank).is_started = true;
  started_ = std::move(ranks);
  return {};
}

Error Window::complete_epoch() {
  if (!started_) return no_epoch("MPI_Win_start");
  Error error = end_accesses(std::nullopt);
  std::vector<Ref<SendRequest>> sends;
  for (const int rank : *started_) {
    of(rank).is_started = false;
    sends.push_back(send(rank, kCompleteTag, {}));
  }
  started_.reset();
  for (const auto& one : sends) this_process().wait(*one);
  return error;
}

Error Window::post_epoch(const std::vector<int>& ranks) {
  if (exposed_) return open_epoch("MPI_Win_post");
  std::vector<Ref<ReceiveRequest>> completions;
  for (const int rank : ranks) completions.push_back(receive(rank, kCompleteTag, {}));
  exposed_ = std::move(completions);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const int rank : ranks) posts_.push_back(send(rank, kPostTag, {}));
  return {};
}

// The sends may wait for room: they are complete when the other ranks have matched them.
void Window::forget_exposure() {
  exposed_.reset();
  posts_.clear();
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

Error Window::wait_epoch() {
  if (!exposed_) return no_epoch("MPI_Win_post");
  for (const auto& one : *exposed_) this_process().wait(*one);
  forget_exposure();
  return {};
}

Error Window::test_epoch(bool* is_over) {
  if (!exposed_) return no_epoch("MPI_Win_post");
  const auto is_complete = [this] {
    for (const auto& one : *exposed_)
      if (!one->is_complete()) return false;
    return true;
  };
  if (!is_complete()) this_process().progress();
  *is_over = is_complete();
  if (*is_over) forget_exposure();
  return {};
}

}  // namespace weft::mpi
