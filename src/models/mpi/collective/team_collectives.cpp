#include "models/mpi/collective/team_collectives.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "weft/base/error.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/collective/data_movement.h"
#include "models/mpi/collective/operands.h"
#include "models/mpi/collective/transfers.h"
#include "models/mpi/communicators/local_team.h"

namespace weft::mpi {

CollectiveContext leaders_of(LocalTeam& team, std::uint64_t context_id, int tag,
                             std::shared_ptr<const std::uint32_t> starts) {
  const std::uint64_t id = leaders_context_id(context_id);
  if (team.leaders_group == nullptr)
    team.leaders_group =
        CollectiveContext::find_group(team.leader_engine(), id, *team.leaders(), team.pe_place());
  return {team.leader_engine(), id,      tag,     team.leaders(),
          team.pe_place(),      nullptr, nullptr, team.leaders_group,
          std::move(starts)};
}

namespace {

int error_class_of(const std::exception_ptr& error) {
  if (error == nullptr) return MPI_SUCCESS;
  try {
    std::rethrow_exception(error);
  } catch (const TransferFailed& failure) {
    return failure.error_class();
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  } catch (const base::Error&) {
    return MPI_ERR_OTHER;
  } catch (...) {  // of the program's operator
    return MPI_ERR_INTERN;
  }
}

// The error class of the exception that leaves the work; MPI_SUCCESS if none does.
runtime::Task<int> outcome_of_work(runtime::Task<> work) {
  std::exception_ptr error;
  try {
    co_await std::move(work);
  } catch (...) {
    error = std::current_exception();
  }
  co_return error_class_of(error);
}

// Runs `work(round)`, a coroutine, at the member that arrives last; each other one waits until it has ended. An exception that
// leaves the work is the outcome of all. Throws TransferFailed with the outcome of this member.
template <class Work>
runtime::Task<> take_part(CollectiveContext context, TeamMember mine, Work work) {
  const std::shared_ptr<TeamRound> round = context.team()->arrive(context.tag(), context.rank(), mine);
  if (round->is_complete()) {
    const int failed = co_await outcome_of_work(work(*round));
    for (std::size_t i = 0; i < round->size() && failed != MPI_SUCCESS; ++i) round->member(i).error = failed;
    round->release();
  } else {
    co_await TeamRound::Released(*round, context.scheduler());
  }
  if (mine.error != MPI_SUCCESS) throw TransferFailed(mine.error);
}

CollectiveContext leaders_of(const CollectiveContext& context) {
  return leaders_of(*context.team(), context.id(), context.tag(), context.starts());
}

// Copies the result to the members but `source`, which has it. An error is the member's own. What is copied at once is not awaited:
// with sanitizers each such co_await takes stack until the loop ends.
runtime::Task<> give_to_members(CollectiveContext context, DataView result,
                                std::span<TeamMember* const> members, const TeamMember* source) {
  for (TeamMember* const one : members) {
    if (one == source) continue;
    TeamMember& member = *one;
    Transfers copy(context);
    copy.copy(result, member.data);
    if (copy.is_under_way()) co_await copy.wait();
    member.error = error_class_of(copy.error());
  }
}

runtime::Task<> work_of_broadcast(CollectiveContext context, int root, TeamRound& round) {
  const LocalTeam& team = *context.team();
  TeamMember& source = round.member(team.is_here(root) ? team.place_of(root) : 0);
  if (team.leaders()->size() > 1)
    co_await broadcast(leaders_of(context), team.pe_place_of(root), source.data);
  co_await give_to_members(context, source.data, round.members(), &source);
}

// Combines the elements of all members in the order of their ranks. The last member's elements hold the result.
// Throws TransferFailed if a member gives other elements, or is in another collective: its memory fits those alone.
DataView combine_members(const Reduction& what, TeamRound& round) {
  for (std::size_t i = 0; i < round.size(); ++i) {
    const ScratchElements* const elements = round.member(i).elements;
    if (elements == nullptr || !elements->has_form(*what.type, what.count))
      throw TransferFailed(MPI_ERR_TRUNCATE);
  }
  for (std::size_t i = 1; i < round.size(); ++i)
    what.combine(*round.member(i - 1).elements, *round.member(i).elements);
  return round.member(round.size() - 1).elements->view();
}

// The other PEs get their messages also if the members here gave wrong elements.
runtime::Task<> work_of_reduce(CollectiveContext context, int root, const Reduction& what, TeamRound& round) {
  const LocalTeam& team = *context.team();
  Transfers transfers(leaders_of(context));
  DataView result;
  transfers.compute([&] { result = combine_members(what, round); });
  if (team.leaders()->size() > 1) co_await reduce(transfers, team.pe_place_of(root), what, result, result);
  transfers.throw_if_failed();
  if (!team.is_here(root)) co_return;
  TeamMember* const member = &round.member(team.place_of(root));
  co_await give_to_members(context, result, std::span(&member, 1), nullptr);
}

runtime::Task<> work_of_allreduce(CollectiveContext context, const Reduction& what, TeamRound& round) {
  Transfers transfers(leaders_of(context));
  DataView result;
  transfers.compute([&] { result = combine_members(what, round); });
  if (context.team()->leaders()->size() > 1) co_await allreduce(transfers, what, result, result);
  transfers.throw_if_failed();
  co_await give_to_members(context, result, round.members(), nullptr);
}

// Runs `work(round)` with the elements of all members. One that has failed before brings none, so that all fail.
template <class Work>
runtime::Task<> combine_in_team(CollectiveContext context, const Reduction& what, DataView in, DataView out,
                                Work work) {
  Transfers transfers(context);
  ScratchElements elements = elements_of(what, transfers);
  transfers.copy(in, elements.view());
  co_await transfers.wait();
  const TeamMember mine{.data = context.on_stream(std::move(out)),
                        .elements = transfers.has_failed() ? nullptr : &elements};
  runtime::Task<> part = take_part(std::move(context), mine, std::move(work));
  co_await transfers.take(std::move(part));
  transfers.throw_if_failed();
}

// Whether the team combines operands in an order that the operator allows.
bool can_combine(const CollectiveContext& context, const Reduction& what) {
  return context.team() != nullptr && (what.operation->is_commutative() || context.team()->keeps_order());
}

}  // namespace

runtime::Task<> barrier_in_teams(CollectiveContext context) {
  if (context.team() == nullptr) return barrier(std::move(context));
  const auto work = [context](TeamRound& /*round*/) { return barrier(leaders_of(context)); };
  return take_part(context, {}, work);
}

runtime::Task<> broadcast_in_teams(CollectiveContext context, int root, DataView data) {
  if (context.team() == nullptr) return broadcast(std::move(context), root, std::move(data));
  const auto work = [context, root](TeamRound& round) { return work_of_broadcast(context, root, round); };
  return take_part(context, {.data = context.on_stream(std::move(data))}, work);
}

runtime::Task<> reduce_in_teams(CollectiveContext context, int root, Reduction what, DataView in,
                                DataView out) {
  if (!can_combine(context, what)) {
    co_await reduce(context, root, what, in, out);
    co_return;
  }
  const auto work = [&context, root, &what](TeamRound& round) {
    return work_of_reduce(context, root, what, round);
  };
  co_await combine_in_team(context, what, in, out, work);
}

runtime::Task<> allreduce_in_teams(CollectiveContext context, Reduction what, DataView in, DataView out) {
  if (!can_combine(context, what)) {
    co_await allreduce(context, what, in, out);
    co_return;
  }
  const auto work = [&context, &what](TeamRound& round) { return work_of_allreduce(context, what, round); };
  co_await combine_in_team(context, what, in, out, work);
}

}  // namespace weft::mpi
