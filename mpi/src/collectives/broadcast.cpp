// Barriers and broadcasts.
#include <cstdint>
#include <memory>
#include <optional>

#include "weft/mpi/mpi.h"

#include "collectives/calls.h"
#include "collectives/on_stream.h"
#include "entry/entry.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/communicators/local_team.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

// A barrier of ranks that share PEs. They wait themselves, without a coroutine for each.
void wait_in_team(Communicator& communicator, LocalTeam& team) {
  const int tag = communicator.next_tag();
  TeamMember mine;
  const std::shared_ptr<TeamRound> round = team.arrive(tag, communicator.rank(), mine);
  if (!round->is_complete()) {
    round->add_waiting(*VirtualRank::current());
    return this_process().wait_until([&] { return round->is_over(); });
  }
  // Also if the exchange between PEs throws.
  const std::shared_ptr<void> release(nullptr, [&](void*) { round->release(); });
  if (team.leaders()->size() > 1) {
    const std::uint64_t context_id = context_of(communicator.context(), ContextUse::kCollectives);
    this_process().run(barrier(leaders_of(team, context_id, tag)));
  }
}

Error call_barrier(const Way& way) {
  Communicator* communicator = nullptr;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (can_run_at_once(way, *communicator))
    return run_at_once(*communicator, {.kind = collective::Kind::kBarrier});
  if (way.kind == Way::Kind::kWaiting && !communicator->is_inter()) {
    if (LocalTeam* const team = communicator->local_team().get()) {
      wait_in_team(*communicator, *team);
      return {};
    }
  }
  const ContextPair contexts = next_collective_contexts(*communicator, way);
  const bool inter = communicator->is_inter();
  return run_collective(way, *communicator,
                        [=] { return inter ? barrier_of_two(contexts) : barrier_in_teams(contexts.local); });
}

Error call_broadcast(const ElementsArgument& data, int root, const Way& way) {
  Communicator* communicator = nullptr;
  DataView view;
  if (Error error = find_communicator(way.comm, &communicator); !error.ok()) return error;
  if (Error error = check_root(*communicator, root); !error.ok()) return error;
  if (root != MPI_PROC_NULL)
    if (Error error = data.view(&view); !error.ok()) return error;
  if (may_run_on_streams(way, *communicator)) {
    const auto prepare = [&](StreamCollective* on_stream) {
      return prepare_bcast(data.buffer, data.count, data.type, root, way.comm, on_stream);
    };
    if (const std::optional<Error> done = run_on_streams(*communicator, prepare)) return *done;
  }
  using collective::Kind;
  if (can_run_at_once(way, *communicator) && is_one_block(view) &&
      communicator->collective_group()->serves(Kind::kBroadcast, view.size_bytes))
    return run_at_once(*communicator,
                       {.kind = Kind::kBroadcast,
                        .root = root,
                        .form = communicator->collective_group()->form(Kind::kBroadcast, view.size_bytes),
                        .data = view.data,
                        .block_bytes = view.size_bytes});
  const ContextPair contexts = next_collective_contexts(*communicator, way);
  const bool inter = communicator->is_inter();
  return run_collective(way, *communicator, [=] {
    return inter ? broadcast_to_other(contexts, root, view) : broadcast_in_teams(contexts.local, root, view);
  });
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Barrier(MPI_Comm comm) {
  return guarded(__func__, comm, [&] { return call_barrier(Way::waiting(comm)); });
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  return guarded(__func__, comm, [&] { return call_barrier(Way::started(comm, request)); });
}

int MPI_Barrier_init(MPI_Comm comm, MPI_Info, MPI_Request* request) {
  return guarded(__func__, comm, [&] { return call_barrier(Way::persistent(comm, request)); });
}

int MPI_Bcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  return guarded(__func__, comm,
                 [&] { return call_broadcast({buffer, count, datatype}, root, Way::waiting(comm)); });
}

int MPI_Ibcast_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                 MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_broadcast({buffer, count, datatype}, root, Way::started(comm, request));
  });
}

int MPI_Bcast_init_c(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info,
                     MPI_Request* request) {
  return guarded(__func__, comm, [&] {
    return call_broadcast({buffer, count, datatype}, root, Way::persistent(comm, request));
  });
}

}  // extern "C"
