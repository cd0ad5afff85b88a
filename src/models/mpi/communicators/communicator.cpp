#include "models/mpi/communicators/communicator.h"

#include <algorithm>

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
    const std::uint64_t context = is_inter() ? local_context_ : context_;
    collective_group_ = CollectiveContext::find_group(engine_, context_of(context, ContextUse::kCollectives),
                                                      *groups_.local, rank());
  }
  return collective_group_;
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
