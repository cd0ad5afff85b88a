#include "models/mpi/communicators/communicator.h"

#include <algorithm>
#include <utility>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/group.h"

namespace weft::mpi {

// Before the first collective: a communicator of a non-blocking call gets its contexts late.
const std::shared_ptr<LocalTeam>& Communicator::local_team() {
  if (!has_looked_for_team_) {
    team_ = LocalTeam::find(engine_, is_inter() ? local_context_ : context_, *groups_.local);
    has_looked_for_team_ = true;
  }
  return team_;
}

// Late, for the same reason.
const std::shared_ptr<collective::Group>& Communicator::collective_group() {
  if (collective_group_ == nullptr) {
    if (has_troubles()) throw TransferFailed(engine_.shared().troubles().fate_of_collectives(context_));
    const std::uint64_t context = is_inter() ? local_context_ : context_;
    collective_group_ = CollectiveContext::find_group(engine_, context_of(context, ContextUse::kCollectives),
                                                      *groups_.local, rank());
  }
  return collective_group_;
}

bool Communicator::has_member(int world_rank) const {
  const auto has = [world_rank](const MembersPointer& group) {
    return group != nullptr && std::ranges::find(*group, world_rank) != group->end();
  };
  return has(groups_.local) || has(groups_.remote);
}

void Communicator::lose(int world_rank) {
  if (context_ == 0) return;  // set_contexts() asks again
  for (const std::uint64_t base : {context_, local_context_}) {
    if (base != 0) engine_.shared().troubles().record(base).lost.push_back(world_rank);
  }
  end_collectives();
}

void Communicator::revoke() {
  for (const std::uint64_t base : {context_, local_context_}) {
    if (base != 0) engine_.shared().troubles().record(base).is_revoked = true;
  }
  end_collectives();
}

void Communicator::end_collectives() {
  num_reachable_ = 0;
  engine_.shared().troubles().record(context_).peers = is_inter() ? groups_.remote : groups_.local;
  if (collective_group_ == nullptr) return;
  ended_group_ = std::move(collective_group_);
  ended_group_->end_all();
}

// A context of 0 is that of a communicator on which a non-blocking call has still to agree.
void Communicator::meet_troubles() {
  if (context_ == 0) return;
  Troubles& troubles = engine_.shared().troubles();
  for (const int rank : troubles.lost()) {
    if (has_member(rank)) lose(rank);
  }
  if (!troubles.is_revoked(context_)) return;
  revoke();
  for (const MembersPointer& group : {groups_.local, groups_.remote}) {
    if (group != nullptr && troubles.pass_on_revocation) troubles.pass_on_revocation(context_, *group);
  }
}

void Communicator::count_outsiders(int count) {
  Outsiders& outsiders = engine_.shared().outsiders();
  for (const MembersPointer& group : {groups_.local, groups_.remote}) {
    if (group == nullptr) continue;
    outsiders.add_uses(*group, count);
    has_outsiders_ = has_outsiders_ ||
                     std::ranges::any_of(*group, [&](int number) { return outsiders.is_outside(number); });
  }
}

Communicator::ContextPair Communicator::next_collective_contexts(
    CallKind kind, const std::shared_ptr<const std::uint32_t>& starts) {
  if (has_troubles()) [[unlikely]]
    throw TransferFailed(engine_.shared().troubles().fate_of_collectives(context_));
  const int tag = next_tag(kind);
  const std::uint64_t id = context_of(context_, ContextUse::kCollectives);
  if (!is_inter()) {
    const CollectiveContext context(engine_, id, tag, groups_.local, rank(), local_team(), stream,
                                    collective_group(), starts);
    return {context, context};
  }
  const std::uint64_t local_id = context_of(local_context_, ContextUse::kCollectives);
  return {CollectiveContext(engine_, local_id, tag, groups_.local, rank(), local_team(), stream,
                            collective_group(), starts),
          CollectiveContext(engine_, id, tag, groups_.remote, rank(), nullptr, stream, nullptr, starts)};
}

int compare(const Communicator& one, const Communicator& other) {
  if (&one == &other) return MPI_IDENT;
  if (one.is_inter() != other.is_inter()) return MPI_UNEQUAL;
  int result = compare_members(*one.group(), *other.group());
  if (one.is_inter()) result = std::max(result, compare_members(*one.remote_group(), *other.remote_group()));
  return result == MPI_IDENT ? MPI_CONGRUENT : result;
}

}  // namespace weft::mpi
