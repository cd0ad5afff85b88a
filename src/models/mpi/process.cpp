#include "models/mpi/process.h"

#include <sched.h>

#include <numeric>

namespace weft::mpi {

namespace {

Ref<Communicator> predefined(PointToPoint& engine, std::uint64_t context, MembersPointer members, int rank,
                             const char* name) {
  auto made = Ref<Communicator>::adopt(new Communicator(engine, context, {std::move(members), rank, nullptr},
                                                        0, this_rank().errors_are_fatal));
  made->set_name(name);
  return made;
}

}  // namespace

Process::Process(runtime::Runtime& runtime, PointToPoint& engine, Fail fail)
    : runtime_(runtime), engine_(engine), fail_(fail), checks_calls_(runtime.model<Mpi>().checks_calls()) {
  auto all = std::make_shared<Members>(static_cast<std::size_t>(engine_.num_ranks()));
  std::iota(all->begin(), all->end(), 0);
  world_ = predefined(engine_, kWorldContext, std::move(all), engine_.rank(), "MPI_COMM_WORLD");
  self_ = predefined(engine_, kSelfContext, std::make_shared<Members>(1, engine_.rank()), 0, "MPI_COMM_SELF");
}

void Process::serve_threads() {
  if (threads_ == nullptr) threads_ = std::make_unique<WaitingThreads>(runtime_);
}

void Process::progress() {
  if (VirtualRank* const rank = VirtualRank::current()) [[unlikely]] {
    rank->yield();
    // The other ranks of this PE may all poll as well.
    if (++num_polls_ % kPollsPerYield == 0) sched_yield();
    return;
  }
  runtime_.poll();
  if (threads_ != nullptr) threads_->let_others_call_next();
  if (runtime_.stopped()) [[unlikely]]
    fail_();
}

}  // namespace weft::mpi
