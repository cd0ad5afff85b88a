// Making communicators: coroutines in which the processes agree on the members and on a context.
//
// The first process of a new group gives the number of the context. It has never given it before, and it is part of the number,
// so no two communicators share one. Threads: the PE's.
#pragma once

#include <cstdint>
#include <string>

#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"

namespace weft::mpi {

// The choice of each process in split().
struct Choice {
  // Processes of one color get one communicator; kNoColor: none.
  std::int64_t color = 0;
  // Their order; equal ones in the order of ranks.
  std::int32_t key = 0;
};
inline constexpr std::int64_t kNoColor = INT64_MIN;

// The result is null for a process that gets no communicator. `handler`: the new one's.
runtime::Task<Ref<Communicator>> split(Ref<Communicator> parent, Choice mine);
// Fills in the contexts of `copy`, which has the groups of `parent`.
runtime::Task<> duplicate(Ref<Communicator> parent, Ref<Communicator> copy,
                          Communicator::CallKind kind = Communicator::CallKind::kWaits);
Ref<Communicator> begin_duplicate(const Communicator& parent);
// The one with `high` has the higher ranks.
runtime::Task<Ref<Communicator>> merge(Ref<Communicator> inter, bool high);

// Called by the members alone, which are in the parent's group; `place` is this process's. Messages of the agreement carry the tag and
// the sender's rank in the parent, so groups that overlap agree apart from each other.
runtime::Task<Ref<Communicator>> create_group(Ref<Communicator> parent, MembersPointer members, int place,
                                              int tag);
// As create_group(), without a parent. The calls of all members have the same `text`.
runtime::Task<Ref<Communicator>> create_from_group(PointToPoint& engine, MembersPointer members, int place,
                                                   std::string text, Ref<ErrorHandler> handler);

// `bridge` is read at the leader of `local` alone, and connects the two leaders.
struct LeaderBridge {
  Ref<Communicator> communicator;
  int remote_leader = 0;
  int tag = 0;
};
runtime::Task<Ref<Communicator>> create_inter(Ref<Communicator> local, int local_leader, LeaderBridge bridge);
struct TwoGroups {
  MembersPointer local;
  int place = 0;
  int local_leader = 0;
  MembersPointer remote;
  int remote_leader = 0;
};
runtime::Task<Ref<Communicator>> create_inter_from_groups(PointToPoint& engine, TwoGroups groups,
                                                          std::string text, Ref<ErrorHandler> handler);

}  // namespace weft::mpi
