// done_inserting(): the elements of a sparse array are counted, and reductions and gathered calls concern those counted.
//
// The PE that has made the array leads a round, in steps in which all PEs answer:
//
//   settle   Every PE waits until the insertions and removals that it has begun are over.
//   count    Every PE says how many elements exist whose home it is. What is inserted later belongs to the next set.
//   set      Every PE learns the number of the set and of its elements, closes the reductions of the set before, and opens
//            those of this one.
//
// Callers that come during a round wait for the next one. A PE that learns of the set later than others finds contributions to
// its reductions that have waited (Reductions keeps them until open()).
#include <algorithm>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sparse/messages.h"
#include "models/chare/sparse/sparse_arrays.h"
#include "models/chare/sparse/state.h"

namespace weft::chare {

using base::StatusCode;
using runtime::Message;
using runtime::MessagePtr;
using Kind = SparseMessage::Kind;

namespace {

int leader_of(const Collection& collection) { return static_cast<int>(collection.id() >> 32); }

SparseMessage step_of(const Collection& collection, Kind kind, std::uint32_t round) {
  SparseMessage step;
  step.kind = kind;
  step.collection = collection.id();
  step.number = round;
  return step;
}

}  // namespace

runtime::Future<> SparseArrays::done_inserting(Collection& collection) {
  expect_sparse(collection, "done_inserting()");
  runtime::Future<> done(chares_.runtime());
  SparseMessage ask = step_of(collection, Kind::kAsk, 0);
  ask.tickets.push_back(begin(collection, {collection.id(), false, done, {}}));
  send(leader_of(collection), ask);
  return done;
}

// --- The leader

void SparseArrays::send_to_all(const SparseMessage& message) {
  chares_.parts_->send_to_all(message_of(message, {}));
}

void SparseArrays::on_ask(Collection& target, const SparseMessage& message) {
  SparseState::Round& round = state(target).round;
  round.later.insert(round.later.end(), message.tickets.begin(), message.tickets.end());
  if (!round.is_running) begin_round(target);
}

void SparseArrays::begin_round(Collection& target) {
  SparseState::Round& round = state(target).round;
  ++round.number;
  round.is_running = true;
  round.num_answers = 0;
  round.num_elements = 0;
  round.callers = std::exchange(round.later, {});
  if (state(target).set == kMostSets) {
    return end_round(
        target, step_of(target, Kind::kReply, 0)
                    .with_error(StatusCode::kUnsupported,
                                base::format("done_inserting() was called {} times for {}; that is the limit",
                                             kMostSets, target.name())));
  }
  send_to_all(step_of(target, Kind::kSettle, round.number));
}

void SparseArrays::end_round(Collection& target, const SparseMessage& outcome) {
  SparseState::Round& round = state(target).round;
  round.is_running = false;
  reply(std::exchange(round.callers, {}), outcome);
  if (!round.later.empty()) begin_round(target);
}

void SparseArrays::on_settled(Collection& target, const SparseMessage& message) {
  SparseState::Round& round = state(target).round;
  if (!round.is_running || message.number != round.number) return;  // of a round that has failed
  if (message.outcome != SparseMessage::Outcome::kDone) return end_round(target, message);
  if (++round.num_answers < chares_.runtime().num_pes()) return;
  round.num_answers = 0;
  SparseMessage count = step_of(target, Kind::kCount, round.number);
  count.set = state(target).set + 1;
  send_to_all(count);
}

void SparseArrays::on_counted(Collection& target, const SparseMessage& message) {
  SparseState::Round& round = state(target).round;
  if (!round.is_running || message.number != round.number) return;
  round.num_elements += message.count;
  if (++round.num_answers < chares_.runtime().num_pes()) return;
  round.num_answers = 0;
  SparseMessage set = step_of(target, Kind::kSet, round.number);
  set.set = state(target).set + 1;
  set.count = round.num_elements;
  send_to_all(set);
}

void SparseArrays::on_set_known(Collection& target, const SparseMessage& message) {
  SparseState::Round& round = state(target).round;
  if (!round.is_running || message.number != round.number) return;
  if (++round.num_answers < chares_.runtime().num_pes()) return;
  end_round(target, step_of(target, Kind::kReply, 0));
}

// --- Every PE

void SparseArrays::settle_if_quiet(Collection& target) {
  if (target.is_destroyed()) return;
  SparseState& here = state(target);
  if (here.settling == 0) return;
  SparseMessage answer = step_of(target, Kind::kSettled, here.settling);
  for (const auto& [index, tickets] : here.removals) {
    const ChareBase* const chare = target.find(index);
    if (chare == nullptr || chare->num_waiting_methods() == 0) continue;
    // The method may wait for this round.
    answer = answer.with_error(StatusCode::kInvalidArgument,
                               base::format("done_inserting() cannot count the elements of {}: {} is to be "
                                            "removed, and a method of it waits. Await the "
                                            "removal first",
                                            target.name(), chare->where()));
    break;
  }
  if (answer.outcome == SparseMessage::Outcome::kDone) {
    if (here.num_begun != 0 || !here.removals.empty()) return;
  }
  here.settling = 0;
  send(leader_of(target), answer);
}

void SparseArrays::on_count(Collection& target, const SparseMessage& message) {
  SparseState& here = state(target);
  here.counted = message.set;
  // All insertions and removals that had begun when the round began are over, and in this count.
  here.removed_since_counted = false;
  SparseMessage answer = step_of(target, Kind::kCounted, message.number);
  answer.count = here.num_at_home;
  send(leader_of(target), answer);
}

void SparseArrays::on_set(Collection& target, const SparseMessage& message) {
  SparseState& here = state(target);
  runtime::Reductions& reductions = chares_.runtime().reductions();
  const std::uint32_t before = std::exchange(here.set, message.set);
  here.num_elements = message.count;
  const std::string why(expect_open(target, before).message());
  if (before != 0) reductions.close(scope_of(target, before), why);
  chares_.parts_->sections->close_sets(target, message.set, why);
  chares_.parts_->all_reduces.fail(target.id(),
                                   std::make_exception_ptr(base::Error(StatusCode::kClosed, why)),
                                   reduction_number(message.set, 0));
  here.is_incomplete = here.removed_since_counted;
  std::uint64_t num_from_start = 0;
  std::vector<std::uint32_t> later;
  const auto joins = [&message](ChareBase& chare) {
    if (chare.set_ >= message.set) return;
    chare.set_ = message.set;
    chare.next_reduction_ = 0;
    chare.first_reduction_here_ = 0;
  };
  target.elements_->directory.for_each([&](std::uint64_t, ChareBase& chare) {
    joins(chare);
    if (chare.set_ > message.set) return;
    if (chare.first_reduction_here_ == 0) {
      ++num_from_start;
    } else {  // it has come from a PE that knew the set already, and has contributed there
      later.push_back(chare.first_reduction_here_);
    }
  });
  // A PE may have begun insertions after it had settled. These elements are counted, but no call finds them yet.
  for (const auto& [index, chare] : target.elements_->being_created) {
    joins(*chare);
    if (chare->set_ != message.set) continue;
    here.is_incomplete = true;
    ++num_from_start;
  }
  reductions.open(scope_of(target, message.set), message.count, num_from_start, false);
  for (const std::uint32_t first : later)
    reductions.contributor_arrived(scope_of(target, message.set), first);
  // Calls to elements that have not been inserted.
  auto waiting = std::exchange(here.waiting, {});
  here.waiting_bytes = 0;
  for (auto& [index, messages] : waiting) {
    for (MessagePtr& one : messages) {
      const EntryHeader header = read_header(*one);
      has_no_element(target, header, std::move(one));
    }
  }
  send(leader_of(target), step_of(target, Kind::kSetKnown, message.number));
}

// --- Checkpoints

bool SparseArrays::is_counted(const Collection& collection) const {
  const SparseState* const here = find_state(collection);
  return here != nullptr && here->set != 0 && !here->is_incomplete && !here->has_newcomers();
}

void SparseArrays::restored(Collection& collection, std::uint64_t num_elements) {
  SparseState& here = state(collection);
  here.set = kFirstSet;
  here.counted = kFirstSet;
  here.num_elements = num_elements;
  here.num_at_home = collection.num_local();
  chares_.runtime().reductions().open(scope_of(collection, kFirstSet), num_elements, collection.num_local(),
                                      false);
}

// --- Reductions and gathers

void SparseArrays::left(Collection& from, const ChareBase& chare) {
  if (!from.is_sparse()) return;
  if (chare.set_ != state(from).set) return;  // of a later set, which is not open
  chares_.runtime().reductions().contributor_left(scope_of(from, chare.set_), chare.first_reduction_here_);
}

bool SparseArrays::arrived(ChareBase& chare, Pup& /*p*/, int /*from_pe*/) {
  if (chare.collection().is_sparse()) joins_sets(chare);
  return true;
}

void SparseArrays::joins_sets(ChareBase& chare) {
  Collection& target = chare.collection();
  SparseState& here = state(target);
  if (chare.set_ < here.set) {  // the set was announced while it was on its way
    chare.set_ = here.set;
    chare.next_reduction_ = 0;
    chare.first_reduction_here_ = 0;
  }
  if (chare.set_ == here.set) {
    chares_.runtime().reductions().contributor_arrived(scope_of(target, chare.set_),
                                                       chare.first_reduction_here_);
  }
  note_first_set(target, chare.set_);
}

void SparseArrays::note_first_set(Collection& collection, std::uint32_t set) {
  SparseState& here = state(collection);
  here.latest_first_set = std::max(here.latest_first_set, set);
}

std::uint32_t SparseArrays::latest_set(const Collection& collection) const {
  const SparseState* const here = find_state(collection);
  return here == nullptr ? 0 : here->set;
}

std::uint64_t SparseArrays::gather_of_set(Collection& collection, std::uint64_t gather) {
  collection.expect_alive();
  const SparseState& here = state(collection);
  if (here.set == 0 || here.is_incomplete || here.has_newcomers()) {
    throw base::Error(
        StatusCode::kInvalidArgument,
        base::format("the results of a call to all elements of {} cannot be gathered: elements {} since they "
                     "were counted. Await "
                     "done_inserting() before the call",
                     collection.name(),
                     here.set == 0 ? "have not been counted, or were inserted" : "were inserted or removed"));
  }
  return gather | std::uint64_t{here.set} << kGatherBits;
}

bool SparseArrays::serves_gather(Collection& target, const EntryHeader& header, Message& message) {
  const SparseState& here = state(target);
  const std::uint64_t set = header.reply.gather() >> kGatherBits;
  if (set == here.set && !here.is_incomplete) {
    if (here.num_elements != 0) return true;
    runtime::Runtime& runtime = chares_.runtime();
    if (static_cast<int>(header.reply.pe) == runtime.pe()) {
      runtime.send(runtime.pe(), Message::pack(runtime, chares_.first_handler_ + kGathered,
                                               header.reply.gather(), std::uint64_t{0}));
    }
    return false;
  }
  chares_.parts_->refuse(
      target, header, message, StatusCode::kInvalidArgument,
      base::format(
          "{} has no results: elements were inserted, removed or counted again since they were counted. "
          "Await done_inserting() before the call, and the call before elements change",
          chares_.parts_->describe_call(target, header, message)));
  return false;
}

void SparseArrays::keep_those_of_set(Collection& target, std::vector<ChareBase*>& chares) {
  const SparseState& here = state(target);
  if (!here.has_newcomers()) return;
  std::erase_if(chares, [&here](const ChareBase* chare) { return chare->set_ > here.set; });
}

base::Status SparseArrays::expect_open(Collection& collection, std::uint32_t set) {
  if (!collection.is_sparse() || set >= state(collection).set) return {};
  return {
      StatusCode::kClosed,
      base::format("done_inserting() of {} has counted its elements again before the reduction was complete",
                   collection.name())};
}

}  // namespace weft::chare
