// Periodic load balancing. It concerns collections whose class says kBalancePeriodically, in a job with WEFT_LB_PERIOD.
//
// The PE that has made the collection decides. Its timer begins a round; a round that is not over at the next tick goes on.
//
//   ask    To all PEs.
//   loads  Each PE reports the elements that are there, with the time that it has worked for them since its last report.
//   plan   All PEs have reported: the decider runs the strategy. Each PE that gives or takes elements gets the moves of those that
//          it gives.
//   done   The PE has tried each of its moves. An element that has gone elsewhere, that cannot move now, that was to go to a PE
//          known to be lost, or that the program wants to move stays where it is or goes where the program wants.
//
// A round needs all PEs. So in a job that outlives losses none begins after the first loss, and one that is under way does not end.
//
// Nothing waits for a round: elements run all the time, and messages find them as they find any element that moves. So the loads
// may be those of elements that are gone when the plan comes. Quiescence detection does not count the messages of a round, so a
// round alone does not delay it; it counts the moves.
#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/periodic/local_round.h"
#include "models/chare/periodic/periodic_balancing.h"
#include "models/chare/sparse/sparse_arrays.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"
#include "runtime/losses/losses.h"

namespace weft::chare {

using runtime::MessagePtr;

enum class PeriodicBalancing::Kind : std::uint32_t {
  kAsk,  // nothing
  kLoads,  // double background load in s, std::uint64_t whether loads are set (0 or 1), Pace, std::vector<PeriodicLoad>,
  // std::vector<ReportedMessages>
  kPlan,  // std::vector<PlannedMove>
  kDone,  // std::uint64_t moves, std::uint64_t bytes
};

LocalRound& PeriodicBalancing::local(Collection& collection) const {
  return collection.elements_->state<LocalRound>(number());
}

int PeriodicBalancing::decider(const Collection& collection) {
  return static_cast<int>(collection.id() >> 32);
}

template <class... Values>
MessagePtr PeriodicBalancing::make(const Collection& collection, std::uint64_t round, Kind kind,
                                   const Values&... values) const {
  MessagePtr message = runtime::Message::pack(
      runtime(), handler_, BalancingHeader{collection.id(), round, static_cast<std::uint32_t>(kind), 0},
      values...);
  message->envelope().flags |= runtime::kControlFlag;
  return message;
}

// --- Rounds

bool PeriodicBalancing::measures(const Collection& made) const {
  return made.balancing() == Balancing::kPeriodic && chares_.parts_->sync->options().period_s > 0 &&
         made.kind() != CollectionKind::kGroup;
}

void PeriodicBalancing::collection_begins(Collection& collection) {
  if (!collection.is_balanced() || collection.balancing() != Balancing::kPeriodic ||
      decider(collection) != runtime().pe()) {
    return;
  }
  decided_.insert(collection.id());
  if (!is_armed_) arm();
}

void PeriodicBalancing::collection_ends(Collection& collection) { decided_.erase(collection.id()); }

void PeriodicBalancing::arm() {
  is_armed_ = true;
  runtime().post_after(chares_.parts_->sync->options().period_s, &tick_);
}

void PeriodicBalancing::tick() {
  is_armed_ = false;
  if (decided_.empty() || runtime().ending() || runtime().losses().count() > 0) return;
  if (num_holds_ == 0) {
    for (const std::uint64_t id : decided_) begin_round(chares_.collection(id));
  }
  arm();
}

namespace {

runtime::SpanEvent span_of(const LocalRound& here) {
  return {.group = "load balancing",
          .name = "round",
          .number = reinterpret_cast<std::uintptr_t>(&here),
          .value = here.num_rounds};
}

}  // namespace

void PeriodicBalancing::begin_round(Collection& collection) {
  LocalRound& here = local(collection);
  if (here.deciding != nullptr || std::chrono::steady_clock::now() < here.rests_until) return;
  here.deciding = std::make_unique<Round>(collection.id(), collection.shape().size(), runtime().num_pes());
  ++here.num_rounds;
  if (runtime().observer() != nullptr) [[unlikely]]
    runtime().observer()->span_began(span_of(here));
  chares_.parts_->send_to_all(make(collection, here.num_rounds, Kind::kAsk));
}

void PeriodicBalancing::report(Collection& collection, std::uint64_t round) {
  SyncPoints& sync = *chares_.parts_->sync;
  std::uint64_t has_set_loads = 0;
  std::vector<PeriodicLoad> loads;
  std::vector<ReportedMessages> messages;
  loads.reserve(collection.num_local());
  runtime().turn_meter().begin_step();
  collection.elements_->directory.for_each([&](std::uint64_t index, ChareBase& chare) {
    if (chare.load_->sync.set_load_s) has_set_loads = 1;
    const ReportedLoad load = sync.take_load(collection, chare);
    loads.push_back({index, load.load_s, static_cast<std::uint32_t>(load.can_move), chare.num_moves(),
                     load.device_load_s});
    SyncPoints::take_messages(chare, loads.size() - 1, messages);
  });
  const double background_s = sync.take_background_s(collection);
  runtime().send(decider(collection), make(collection, round, Kind::kLoads, background_s, has_set_loads,
                                           sync.take_pace(collection), loads, messages));
}

base::Status PeriodicBalancing::on_loads(Collection& collection, std::uint64_t round, int from_pe, Pup& p) {
  LocalRound& here = local(collection);
  if (here.deciding == nullptr || round != here.num_rounds || here.deciding->is_complete()) {
    return misfit("loads of round {}, for which nothing has asked", round);
  }
  double background_s = 0;
  std::uint64_t has_set_loads = 0;
  Pace pace;
  std::vector<PeriodicLoad> loads;
  std::vector<ReportedMessages> messages;
  p | background_s | has_set_loads | pace | loads | messages;
  base::Status status = here.deciding->add(from_pe, background_s, has_set_loads, loads, messages);
  if (status.ok()) status = here.deciding->add_pace(from_pe, pace);
  if (!status.ok()) return status;
  if (here.deciding->is_complete()) decide(collection);
  return {};
}

void PeriodicBalancing::decide(Collection& collection) {
  LocalRound& here = local(collection);
  SyncPoints& sync = *chares_.parts_->sync;
  const std::string what = base::format("the load-balancing strategy '{}' in round {} of {}",
                                        sync.options().strategy, here.num_rounds, collection.name());
  std::vector<PlanOfPe> plans;
  try {
    if (here.strategy == nullptr) here.strategy = sync.options().make_strategy();
    auto decided = here.deciding->decide(*here.strategy);
    if (!decided.ok()) {
      return runtime().fail(
          base::format("PE {}: {} is wrong: {}", runtime().pe(), what, decided.status().message()));
    }
    plans = std::move(decided).value();
  } catch (...) {
    return runtime().fail_unawaited(std::current_exception(), what);
  }
  if (!here.deciding->snapshot().objects.empty()) sync.record(here.deciding->snapshot());
  for (std::size_t pe = 0; pe < plans.size(); ++pe) {
    if (plans[pe].is_empty()) continue;
    runtime().send(static_cast<int>(pe), make(collection, here.num_rounds, Kind::kPlan, plans[pe].moves));
  }
  if (here.deciding->is_done()) end_round(collection);
}

base::Status PeriodicBalancing::on_done(Collection& collection, std::uint64_t round, int from_pe, Pup& p) {
  LocalRound& here = local(collection);
  if (here.deciding == nullptr || !here.deciding->is_complete() || round != here.num_rounds) {
    return misfit("no moves of round {} are under way", round);
  }
  if (base::Status status = here.deciding->done(from_pe, p); !status.ok()) return status;
  if (here.deciding->is_done()) end_round(collection);
  return {};
}

void PeriodicBalancing::end_round(Collection& collection) {
  LocalRound& here = local(collection);
  const std::unique_ptr<Round> ended = std::move(here.deciding);
  if (runtime().observer() != nullptr) [[unlikely]]
    runtime().observer()->span_ended(span_of(here));
  // Moves that take longer than the period do not follow one another at once, so that quiescence has time to be found.
  here.rests_until = std::chrono::steady_clock::now() + ended->elapsed();
  if (!chares_.parts_->sync->options().is_verbose || ended->snapshot().objects.empty()) return;
  const std::string text = ended->report(collection.name(), here.num_rounds, here.strategy->name()).text();
  std::fputs(text.c_str(), stderr);
}

// --- Moves

base::Status PeriodicBalancing::on_plan(Collection& collection, std::uint64_t round, Pup& p) {
  std::vector<PlannedMove> moves;
  p | moves;
  LocalRound& here = local(collection);
  if (here.has_plan)
    return misfit("moves of round {}, and those of round {} are under way", round, here.round);
  for (const PlannedMove& move : moves) {
    if (move.index >= collection.shape().size() ||
        move.to_pe >= static_cast<std::uint64_t>(runtime().num_pes()) ||
        static_cast<int>(move.to_pe) == runtime().pe()) {
      return misfit("element {} is to move to PE {}", move.index, move.to_pe);
    }
  }
  here.has_plan = true;
  here.round = round;
  here.num_moved = 0;
  here.bytes_moved = 0;
  if (num_holds_ != 0) moves.clear();  // not even counted: a checkpoint compares the counts of messages
  for (const PlannedMove& move : moves) {
    if (collection.find(move.index) == nullptr) continue;
    if (here.planned.emplace(move.index, static_cast<int>(move.to_pe)).second)
      moves_.add({collection.id(), move.index});
  }
  finish_plan(collection);
  return {};
}

void PeriodicBalancing::hold() {
  ++num_holds_;
  for (const auto& [id, collection] : chares_.parts_->collections) give_up_plan(*collection);
}

void PeriodicBalancing::give_up_plan(Collection& collection) {
  if (!collection.created_) return;  // destroyed
  LocalRound& here = local(collection);
  for (const auto& [index, to_pe] : std::exchange(here.planned, {})) {
    const ChareBase* const chare = collection.find(index);
    if (chare != nullptr && chare->move_to_ < 0) runtime().stay({collection.id(), index});
  }
  finish_plan(collection);
}

void PeriodicBalancing::make_move(runtime::ElementId element) {
  Collection& collection = chares_.collection(element.collection);
  if (!collection.created_) return;  // destroyed
  LocalRound& here = local(collection);
  if (!here.planned.contains(element.index)) return;
  ChareBase* const chare = collection.find(element.index);
  if (chare == nullptr || chare->move_to_ >= 0) {
    here.planned.erase(element.index);
  } else {
    carry_out(collection, *chare);
  }
  if (!runtime().stopped()) finish_plan(collection);
}

bool PeriodicBalancing::continue_move(ChareBase& chare) {
  Collection& collection = chare.collection();
  LocalRound& here = local(collection);
  if (!here.planned.contains(chare.linear_index_)) return false;
  const bool wants_another_move = chare.move_to_ >= 0;
  if (wants_another_move) {
    here.planned.erase(chare.linear_index_);
  } else {
    carry_out(collection, chare);
  }
  if (!runtime().stopped()) finish_plan(collection);
  return !wants_another_move;
}

void PeriodicBalancing::moves_no_more(const ChareBase& chare) {
  if (local(chare.collection()).planned.erase(chare.linear_index_) != 0) finish_plan(chare.collection());
}

void PeriodicBalancing::carry_out(Collection& collection, ChareBase& chare) {
  LocalRound& here = local(collection);
  const runtime::ElementId element{collection.id(), chare.linear_index_};
  const int to_pe = here.planned.at(element.index);
  const std::string where = chare.where();
  try {
    runtime::MoveState state = runtime::MoveState::kBusy;
    if (num_holds_ != 0 || !SyncPoints::can_move(chare) || chares_.parts_->sparse->is_to_be_removed(chare) ||
        runtime().losses().is_lost(to_pe)) {
      runtime().stay(element);
    } else {
      state = runtime().prepare_to_move(element, false);
    }
    if (state == runtime::MoveState::kWaits) return;
    here.planned.erase(element.index);
    if (state == runtime::MoveState::kBusy) return;
    here.bytes_moved += chares_.parts_->depart(chare, to_pe);
    ++here.num_moved;
  } catch (...) {
    runtime().fail_unawaited(std::current_exception(), base::format("the move of {} to PE {}", where, to_pe));
  }
}

void PeriodicBalancing::finish_plan(Collection& collection) {
  LocalRound& here = local(collection);
  if (!here.has_plan || !here.planned.empty()) return;
  here.has_plan = false;
  runtime().send(decider(collection),
                 make(collection, here.round, Kind::kDone, here.num_moved, here.bytes_moved));
}

// --- Messages

void PeriodicBalancing::on_message(MessagePtr message) {
  SyncPoints& sync = *chares_.parts_->sync;
  BalancingHeader header;
  Pup p = message->unpacker();
  Collection* const target = sync.receive(message, Balancing::kPeriodic, p, header);
  if (target == nullptr) return;
  const auto from_pe = static_cast<int>(message->envelope().source_pe);
  const auto kind = static_cast<Kind>(header.kind);
  const bool is_of_decider = kind == Kind::kAsk || kind == Kind::kPlan;
  base::Status status;
  if ((is_of_decider ? from_pe : runtime().pe()) != decider(*target)) {
    status = misfit("another PE decides");
  } else if (kind == Kind::kAsk) {
    report(*target, header.number);
  } else if (kind == Kind::kLoads) {
    status = on_loads(*target, header.number, from_pe, p);
  } else if (kind == Kind::kPlan) {
    status = on_plan(*target, header.number, p);
  } else if (kind == Kind::kDone) {
    status = on_done(*target, header.number, from_pe, p);
  } else {
    status = misfit("there is no kind {}", header.kind);
  }
  if (!status.ok()) sync.unfit(*target, from_pe, status.message());
}

}  // namespace weft::chare
