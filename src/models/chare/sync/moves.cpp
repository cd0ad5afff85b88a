// The moves of a step of load balancing at sync points: a PE carries out its plan, and counts the elements that come. sync.cpp has the
// protocol.
#include <exception>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

bool SyncPoints::advance(Collection& collection, std::uint64_t step) {
  LocalSync& here = local(collection);
  if (step <= here.step) return step == here.step;
  if (here.num_waiting != 0) return false;
  steps_are_over(collection, step - here.step);
  here.begin(step);
  for (const std::uint64_t index : std::exchange(here.early, {})) {
    if (ChareBase* const chare = collection.find(index)) wait(*chare);
  }
  return true;
}

base::Status SyncPoints::on_plan(Collection& collection, std::uint64_t step, int from_pe, Pup& p) {
  std::uint64_t num_arrivals = 0;
  std::vector<PlannedMove> moves;
  p | num_arrivals | moves;
  if (from_pe != decider(collection)) return misfit("another PE decides");
  LocalSync& here = local(collection);
  if (!advance(collection, step) || here.has_plan) return misfit("moves of step {}", step);
  if (num_arrivals > collection.shape().size() || here.num_arrived > num_arrivals) {
    return misfit("{} elements are to come, {} have", num_arrivals, here.num_arrived);
  }
  here.has_plan = true;
  here.num_expected = num_arrivals;
  if (base::Status status = plan(collection, moves); !status.ok()) return status;
  finish_plan(collection);
  return {};
}

base::Status SyncPoints::plan(Collection& collection, const std::vector<PlannedMove>& moves) {
  LocalSync& here = local(collection);
  for (const PlannedMove& move : moves) {
    ChareBase* const chare = move.index < collection.shape().size() ? collection.find(move.index) : nullptr;
    if (chare == nullptr || chare->load_->sync.phase != SyncPhase::kWaits ||
        chare->load_->sync.step != here.step) {
      return misfit("element {} does not wait here", move.index);
    }
    if (move.to_pe >= static_cast<std::uint64_t>(runtime().num_pes()) ||
        static_cast<int>(move.to_pe) == runtime().pe()) {
      return misfit("element {} is to move to PE {}", move.index, move.to_pe);
    }
    here.planned.push_back(move);
  }
  for (const PlannedMove& move : moves) moves_.add({collection.id(), move.index});
  return {};
}

void SyncPoints::make_next_move(std::uint64_t id) {
  Collection& collection = chares_.collection(id);
  if (!collection.created_) return;  // destroyed
  LocalSync& here = local(collection);
  const PlannedMove move = here.planned.front();
  here.planned.pop_front();
  carry_out(collection, *collection.find(move.index), static_cast<int>(move.to_pe));
  if (!runtime().stopped()) finish_plan(collection);
}

void SyncPoints::carry_out(Collection& collection, ChareBase& chare, int to_pe) {
  LocalSync& here = local(collection);
  const runtime::ElementId element{collection.id(), chare.linear_index()};
  const std::string where = chare.where();
  runtime::MoveState state = runtime::MoveState::kBusy;
  if (!can_move(chare) || runtime().losses().is_lost(to_pe)) {
    runtime().stay(element);
  } else {
    try {
      state = runtime().prepare_to_move(element, false);
    } catch (...) {
      return runtime().fail_unawaited(std::current_exception(),
                                      base::format("the move of {} to PE {}", where, to_pe));
    }
  }
  if (state == runtime::MoveState::kWaits) {
    here.leaving.emplace(element.index, to_pe);
    return;
  }
  if (state == runtime::MoveState::kBusy) {
    runtime().send(to_pe, make(collection, here.step, SyncKind::kStays));
    return;
  }
  try {
    here.bytes_moved += chares_.parts_->depart(chare, to_pe);
    ++here.num_moved;
  } catch (...) {
    runtime().fail_unawaited(std::current_exception(), base::format("the move of {} to PE {}", where, to_pe));
  }
}

bool SyncPoints::continue_move(ChareBase& chare) {
  if (chare.load_ == nullptr) return false;
  Collection& collection = chare.collection();
  const auto planned = local(collection).leaving.extract(chare.linear_index());
  if (planned.empty()) return false;
  carry_out(collection, chare, planned.mapped());
  if (!runtime().stopped()) finish_plan(collection);
  return true;
}

base::Status SyncPoints::on_stays(Collection& collection, std::uint64_t step) {
  LocalSync& here = local(collection);
  if (!advance(collection, step)) return misfit("an element that stays in step {}", step);
  if (++here.num_arrived > here.num_expected && here.has_plan) return misfit("no element is missing");
  finish_plan(collection);
  return {};
}

void SyncPoints::finish_plan(Collection& collection) {
  LocalSync& here = local(collection);
  if (!here.has_plan || !here.planned.empty() || !here.leaving.empty() ||
      here.num_arrived != here.num_expected) {
    return;
  }
  if (here.rounds == nullptr) {
    runtime().send(decider(collection),
                   make(collection, here.step, SyncKind::kDone, here.num_moved, here.bytes_moved));
  } else if (here.rounds->decision.num_untaken() == 0) {
    const balance::DistributedDecision& decision = here.rounds->decision;
    const PeOutcome outcome{here.num_moved, here.bytes_moved, decision.time_before_s(), decision.time_s(),
                            here.rounds->decision_s};
    runtime().send(decider(collection), make(collection, here.step, SyncKind::kOver, outcome));
  }
}

}  // namespace weft::chare
