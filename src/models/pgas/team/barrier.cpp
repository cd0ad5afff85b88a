#include "models/pgas/team/barrier.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::pgas {

Barrier::Barrier(runtime::Messenger& messenger, runtime::HandlerId handler, const Members& members)
    : messenger_(messenger), handler_(handler), members_(members) {
  while ((std::int64_t{1} << num_rounds_) < members_.size()) ++num_rounds_;
}

runtime::Future<> Barrier::enter() {
  State& state = state_of(next_++);
  runtime::Future<> done(messenger_);
  state.done = done;
  state.is_entered = true;
  if (num_rounds_ > 0) send(state);
  advance(state);
  return done;
}

void Barrier::arrive(int from, const BarrierNote& note) {
  const int size = members_.size();
  const bool is_round = note.round < static_cast<std::uint64_t>(num_rounds_);
  const auto distance = is_round ? std::int64_t{1} << note.round : 0;
  if (!is_round || (from + distance) % size != members_.rank()) {
    throw base::Error(
        base::StatusCode::kCorrupt,
        base::format("rank {} sent a note of round {} of a barrier, which it does not send; do all "
                     "PEs run the same program?",
                     from, note.round));
  }
  State& state = state_of(note.barrier);
  state.arrived |= std::uint32_t{1} << note.round;
  if (state.is_entered) advance(state);
}

Barrier::State& Barrier::state_of(std::uint64_t number) {
  const auto found = std::ranges::find(states_, number, &State::number);
  if (found != states_.end()) return *found;
  State& made = states_.emplace_back();
  made.number = number;
  return made;
}

void Barrier::send(const State& state) {
  const std::int64_t distance = std::int64_t{1} << state.round;
  const int to = static_cast<int>((members_.rank() + distance) % members_.size());
  const BarrierNote note{members_.id(), state.number, static_cast<std::uint64_t>(state.round)};
  runtime::MessagePtr message = runtime::Message::pack(messenger_, handler_, note);
  message->envelope().flags |= runtime::kControlFlag | runtime::kUrgentFlag;
  messenger_.send(members_.pe_of(to), std::move(message));
}

void Barrier::advance(State& state) {
  while (state.round < num_rounds_ && (state.arrived >> state.round & 1) != 0) {
    ++state.round;
    if (state.round < num_rounds_) send(state);
  }
  if (state.round < num_rounds_) return;
  const runtime::Future<> done = std::move(state.done);
  std::swap(state, states_.back());
  states_.pop_back();
  done.set();
}

}  // namespace weft::pgas
