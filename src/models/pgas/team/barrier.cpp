#include "models/pgas/team/barrier.h"

#include <cstddef>
#include <string>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/refuse_claim.h"

namespace weft::pgas {

Barrier::Barrier(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members)
    : messenger_(messenger), handler_(handler), members_(members) {
  while ((std::int64_t{1} << num_rounds_) < members_.size()) ++num_rounds_;
}

runtime::Future<> Barrier::enter() {
  const std::uint64_t number = next_++;
  BarrierState& state = states_[number];
  const Entered mine{members_.rank(), collectives_};
  if (state.first.rank >= 0 && state.first.collectives != collectives_)
    fail_different(number, state.first, mine);
  state.first = mine;
  runtime::Future<> done(messenger_);
  state.done = done;
  state.is_entered = true;
  if (num_rounds_ > 0) send(number, state);
  advance(number, state);
  return done;
}

void Barrier::begin_other(std::string_view name) {
  ++collectives_;
  last_ = name;
  const auto next = states_.find(next_);
  if (next != states_.end() && next->second.first.collectives < collectives_)
    fail_different(next_, next->second.first, {members_.rank(), collectives_});
}

void Barrier::arrive(int from, const BarrierNote& note) {
  const int size = members_.size();
  const bool is_round = note.round < static_cast<std::uint64_t>(num_rounds_);
  const auto distance = is_round ? std::int64_t{1} << note.round : 0;
  const auto refuse = [&](std::string_view why) {
    base::refuse_claim(base::format("rank {} sent a note of round {} of a barrier{}", from, note.round, why));
  };
  if (!is_round || (from + distance) % size != members_.rank()) refuse(", which it does not send");
  if (note.barrier < next_ && !states_.contains(note.barrier)) refuse(" that is over");
  BarrierState& state = states_[note.barrier];
  const std::uint32_t bit = std::uint32_t{1} << note.round;
  if ((state.arrived & bit) != 0) refuse(" a second time");
  state.arrived |= bit;
  const Entered theirs{from, note.collectives};
  if (state.first.rank < 0) state.first = theirs;
  if (state.first.collectives != theirs.collectives) return fail_different(note.barrier, theirs, state.first);
  if (state.is_entered) return advance(note.barrier, state);
  if (theirs.collectives < collectives_)
    fail_different(note.barrier, theirs, {members_.rank(), collectives_});
}

void Barrier::fail_different(std::uint64_t number, const Entered& one, const Entered& other) {
  const bool is_mine = other.rank == members_.rank();
  const std::string who = is_mine ? "this rank" : base::format("rank {}", other.rank);
  const bool has_last = is_mine && other.collectives == collectives_ && collectives_ > one.collectives;
  messenger_.fail(base::format(
      "PE {}: rank {} calls barrier {} of a team after {} other collectives, and {} after {}{}; all ranks of "
      "a team call the same collectives in the same order",
      messenger_.pe(), one.rank, number, one.collectives, who, other.collectives,
      has_last ? base::format(" (the last is {})", last_) : ""));
}

void Barrier::send(std::uint64_t number, const BarrierState& state) {
  const std::int64_t distance = std::int64_t{1} << state.round;
  const int to = static_cast<int>((members_.rank() + distance) % members_.size());
  const BarrierNote note{members_.id(), number, static_cast<std::uint64_t>(state.round),
                         state.first.collectives};
  runtime::MessagePtr message = runtime::Message::pack(messenger_, handler_, note);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(members_.pe_of(to), std::move(message));
}

void Barrier::advance(std::uint64_t number, BarrierState& state) {
  while (state.round < num_rounds_ && (state.arrived >> state.round & 1) != 0) {
    ++state.round;
    if (state.round < num_rounds_) send(number, state);
  }
  if (state.round < num_rounds_) return;
  const runtime::Future<> done = std::move(state.done);
  states_.erase(number);
  done.set();
}

}  // namespace weft::pgas
