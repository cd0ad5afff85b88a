#include "models/pgas/team/barrier.h"

#include <cstddef>
#include <string>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::pgas {

Barrier::Barrier(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members)
    : messenger_(messenger), handler_(handler), members_(members) {
  while ((std::int64_t{1} << num_rounds_) < members_.size()) ++num_rounds_;
}

runtime::Future<> Barrier::enter() {
  const std::uint64_t number = next_++;
  State& state = states_[number];
  if (state.from >= 0 && state.collectives != collectives_)
    fail_different(number, state.from, state.collectives);
  state.collectives = collectives_;
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
  if (next != states_.end() && next->second.collectives < collectives_)
    fail_different(next_, next->second.from, next->second.collectives);
}

void Barrier::arrive(int from, const BarrierNote& note) {
  const int size = members_.size();
  const bool is_round = note.round < static_cast<std::uint64_t>(num_rounds_);
  const auto distance = is_round ? std::int64_t{1} << note.round : 0;
  const auto refuse = [&](std::string_view why) {
    throw base::Error(base::StatusCode::kCorrupt,
                      base::format("rank {} sent a note of round {} of a barrier{}; do all PEs run the same "
                                   "program?",
                                   from, note.round, why));
  };
  if (!is_round || (from + distance) % size != members_.rank()) refuse(", which it does not send");
  if (note.barrier < next_ && !states_.contains(note.barrier)) refuse(" that is over");
  State& state = states_[note.barrier];
  const std::uint32_t bit = std::uint32_t{1} << note.round;
  if ((state.arrived & bit) != 0) refuse(" a second time");
  state.arrived |= bit;
  if (state.is_entered ? note.collectives != state.collectives : note.collectives < collectives_)
    return fail_different(note.barrier, from, note.collectives);
  if (state.is_entered) return advance(note.barrier, state);
  if (state.from < 0) {
    state.from = from;
    state.collectives = note.collectives;
  } else if (state.collectives != note.collectives) {
    fail_different(note.barrier, from, note.collectives);
  }
}

void Barrier::fail_different(std::uint64_t number, int from, std::uint64_t theirs) {
  const std::string last = collectives_ > theirs ? base::format(" (the last is {})", last_) : "";
  messenger_.fail(base::format(
      "PE {}: rank {} calls barrier {} of a team after {} other collectives, and this rank after {}{}; all "
      "ranks of a team call the same collectives in the same order",
      messenger_.pe(), from, number, theirs, collectives_, last));
}

void Barrier::send(std::uint64_t number, const State& state) {
  const std::int64_t distance = std::int64_t{1} << state.round;
  const int to = static_cast<int>((members_.rank() + distance) % members_.size());
  const BarrierNote note{members_.id(), number, static_cast<std::uint64_t>(state.round), state.collectives};
  runtime::MessagePtr message = runtime::Message::pack(messenger_, handler_, note);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(members_.pe_of(to), std::move(message));
}

void Barrier::advance(std::uint64_t number, State& state) {
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
