// A step of load balancing at sync points that all PEs decide together, with a strategy that is distributed: no PE gets the loads
// of other PEs' elements, except of those that it is given. balance::DistributedDecision decides; this file carries its messages.
//
// The PE that has made the collection counts (sync/counting.cpp). Its messages have a few bytes each.
//
//   waiting  All elements of a PE wait: the PE tells their number, the sums of their loads and their pace.
//   begin    All elements wait. Goes to all PEs. It says whether the loads are those of devices (the busier resource),
//            whether background load counts, and the pace of all PEs.
//   talked   What elements of a PE have sent to elements of others. It goes where the PE believes the receivers to be, and is
//            passed on from there as calls are. Receivers stay where they are, so it arrives.
//   places   The answer: the PE of these receivers. Both ends then know of the bytes, and of the place of the other one.
//   ready    The PE has all answers.
//   rounds   All PEs are ready. Goes to all PEs.
//   state, proposal: see DistributedDecision. PEs are in different rounds.
//   taken    The PE has ended its last round, and owns elements by decision that are on another PE: it tells that PE, which then
//            sends them. This is the only message about an element to the PE where it is.
//   over     The PE has ended its last round, knows where all its elements go, has sent those that go to other PEs, and has
//            received those that come. Then the step ends as others do: resume, see sync.cpp.
//
// Why a PE knows that it has heard everything: each element has one owner by decision after the last round. A PE counts its own
// elements that it does not own then. Each of them is in exactly one `taken` message. It also counts the elements of other PEs that
// it owns: so many come, or stay after all. So no PE needs to know how many messages others send.
//
// A PE that is in the step gets no message of an earlier one, because a step ends when all PEs are done. Messages of the step may
// come before `begin` or `rounds`, which other PEs have got earlier. Their contents are kept.
//
// A message that does not fit the state of its receiver ends the job. If a PE gives an element that it does not own, the element's PE finds that: it is not away, or
// it is taken twice.
#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_rounds.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

namespace {

auto ends(const TalkedTo& talked) { return std::tuple(talked.to, talked.from); }

// Whether elements may have sent these: they are in order, so that nothing is there twice.
base::Status check_talks(const std::vector<TalkedTo>& talks, std::uint64_t num_elements) {
  if (talks.empty()) return misfit("nothing was sent");
  for (std::size_t i = 0; i < talks.size(); ++i) {
    const TalkedTo& one = talks[i];
    const bool is_in_order = i == 0 || ends(talks[i - 1]) < ends(one);
    if (!is_in_order || one.to >= num_elements || one.from >= num_elements || one.to == one.from ||
        one.bytes > SentMessages::kMostBytes) {
      return misfit("element {} has sent {} bytes to element {} of {}", one.from, one.bytes, one.to,
                    num_elements);
    }
  }
  return {};
}

}  // namespace

LocalRounds& SyncPoints::rounds(Collection& collection) {
  LocalSync& here = local(collection);
  if (here.rounds == nullptr) {
    if (here.strategy == nullptr) here.strategy = options_.make_strategy();
    here.rounds = std::make_unique<LocalRounds>(*here.strategy->distributed(), runtime().pe(),
                                                runtime().num_pes(), collection.shape().size());
  }
  return *here.rounds;
}

base::Status SyncPoints::on_rounds_message(Collection& collection, const BalancingHeader& header, int from_pe,
                                           Pup& p) {
  const auto kind = static_cast<SyncKind>(header.kind);
  if (kind == SyncKind::kWaiting || kind == SyncKind::kReady || kind == SyncKind::kOver) {
    return on_count(collection, header, from_pe, p);
  }
  const bool is_of_counter = kind == SyncKind::kBegin || kind == SyncKind::kRounds;
  if (is_of_counter && from_pe != decider(collection)) return misfit("another PE counts");
  if (!advance(collection, header.number)) {
    return misfit("a message of step {}, and this PE is in step {}", header.number, local(collection).step);
  }
  switch (kind) {
    case SyncKind::kBegin:
      return on_begin(collection, p);
    case SyncKind::kTalked:
      return on_talked(collection, p);
    case SyncKind::kPlaces:
      return on_places(collection, from_pe, p);
    case SyncKind::kRounds:
      return on_rounds(collection);
    case SyncKind::kState:
      return on_state(collection, from_pe, p);
    case SyncKind::kProposal:
      return on_proposal(collection, from_pe, p);
    default:
      return on_taken(collection, from_pe, p);
  }
}

// --- Before the first round

void SyncPoints::report_waiting(Collection& collection) {
  LocalSync& here = local(collection);
  LocalRounds& rounds_here = rounds(collection);
  WaitingElements waiting;
  std::vector<ReportedMessages> messages;
  for (const std::uint64_t index : here.unreported) {
    ChareBase& chare = *collection.find(index);
    if (chare.load_->sync.set_load_s) waiting.has_set_loads = 1;
    const ReportedLoad load = take_load(collection, chare);
    waiting.load_s += load.load_s;
    waiting.device_load_s += load.device_load_s;
    rounds_here.loads.push_back(load);
    messages.clear();
    take_messages(chare, 0, messages);
    for (const ReportedMessages& one : messages) {
      rounds_here.sent.push_back({one.sent.index, index, one.sent.bytes});
    }
  }
  waiting.num_elements = here.unreported.size();
  waiting.pace = std::exchange(here.pace, {});
  rounds_here.pace.add(waiting.pace);
  here.unreported.clear();
  runtime().send(decider(collection), make(collection, here.step, SyncKind::kWaiting, waiting));
}

base::Status SyncPoints::on_begin(Collection& collection, Pup& p) {
  std::uint64_t is_by_device_time = 0;
  std::uint64_t ignores_background = 0;
  Pace all;
  p | is_by_device_time | ignores_background | all;
  LocalSync& here = local(collection);
  LocalRounds& rounds_here = rounds(collection);
  if (is_by_device_time > 1 || ignores_background > 1 || !all.is_valid()) {
    return misfit("step {} begins with flags of {} and {}, after {} s", here.step, is_by_device_time,
                  ignores_background, all.time_s);
  }
  if (rounds_here.has_begun || !here.unreported.empty() || here.num_waiting != collection.num_local() ||
      here.num_waiting != rounds_here.loads.size()) {
    return misfit("step {} begins, and an element has not been reported", here.step);
  }
  rounds_here.has_begun = true;
  rounds_here.began = std::chrono::steady_clock::now();
  rounds_here.ignores_background = ignores_background == 1;
  rounds_here.speed = speed_of(rounds_here.pace, all);
  if (!std::exchange(here.has_reported, true)) here.known_background_s = background_s(collection);
  std::ranges::sort(rounds_here.loads, {}, &ReportedLoad::index);
  for (const ReportedLoad& load : rounds_here.loads) {
    const double load_s = is_by_device_time == 1 ? load.device_load_s : load.load_s;
    base::Status status = rounds_here.decision.add_object(load.index, load_s, load.can_move != 0);
    if (!status.ok()) return status;
  }
  return tell_talks(collection);
}

base::Status SyncPoints::tell_talks(Collection& collection) {
  LocalRounds& rounds_here = rounds(collection);
  std::ranges::sort(rounds_here.sent, {}, &ends);
  for (const TalkedTo& one : std::exchange(rounds_here.sent, {})) {
    if (collection.find(one.to) == nullptr) {
      if (rounds_here.places.try_emplace(one.to, -1).second) ++rounds_here.num_unknown;
      rounds_here.sent_away.push_back(one);
      continue;
    }
    for (const auto& [own, other] : {std::pair(one.from, one.to), std::pair(one.to, one.from)}) {
      base::Status status = rounds_here.decision.add_edge(own, other, runtime().pe(), one.bytes);
      if (!status.ok()) return status;
    }
  }
  if (rounds_here.num_unknown == 0) {
    become_ready(collection);
    return {};
  }
  return send_talks(collection, static_cast<std::uint64_t>(runtime().pe()), rounds_here.sent_away);
}

base::Status SyncPoints::send_talks(Collection& collection, std::uint64_t origin,
                                    const std::vector<TalkedTo>& talks) {
  std::map<int, std::vector<TalkedTo>> to_pes;
  for (const TalkedTo& one : talks) {
    const int pe = collection.elements_->directory.whereabouts(one.to, collection.home(one.to)).pe;
    if (pe == runtime().pe()) {
      return misfit("element {} is not on its home PE {}, and no PE has reported where it is", one.to, pe);
    }
    to_pes[pe].push_back(one);
  }
  for (const auto& [pe, some] : to_pes) {
    runtime().send(pe, make(collection, local(collection).step, SyncKind::kTalked, origin, some));
  }
  return {};
}

base::Status SyncPoints::on_talked(Collection& collection, Pup& p) {
  std::uint64_t origin = 0;
  std::vector<TalkedTo> talks;
  p | origin | talks;
  if (base::Status status = check_talks(talks, collection.shape().size()); !status.ok()) return status;
  LocalSync& here = local(collection);
  LocalRounds& rounds_here = rounds(collection);
  if (origin >= static_cast<std::uint64_t>(runtime().num_pes()) || rounds_here.has_rounds) {
    return misfit("elements of PE {} have sent messages, which is told in step {}", origin, here.step);
  }
  std::vector<std::uint64_t> found;
  std::vector<TalkedTo> pass_on;
  for (const TalkedTo& one : talks) {
    const ChareBase* const chare = collection.find(one.to);
    if (chare == nullptr) {
      pass_on.push_back(one);
      continue;
    }
    if (chare->load_->sync.phase != SyncPhase::kWaits || collection.find(one.from) != nullptr) {
      return misfit("element {} of PE {} has sent to element {}, and does not wait there", one.from, origin,
                    one.to);
    }
    rounds_here.heard.push_back({one, static_cast<int>(origin)});
    if (found.empty() || found.back() != one.to) found.push_back(one.to);
  }
  if (!found.empty()) {
    runtime().send(static_cast<int>(origin), make(collection, here.step, SyncKind::kPlaces, found));
  }
  return send_talks(collection, origin, pass_on);
}

base::Status SyncPoints::on_places(Collection& collection, int from_pe, Pup& p) {
  std::vector<std::uint64_t> elements;
  p | elements;
  LocalRounds& rounds_here = rounds(collection);
  for (const std::uint64_t element : elements) {
    const auto place = rounds_here.places.find(element);
    if (place == rounds_here.places.end() || place->second >= 0 || from_pe == runtime().pe()) {
      return misfit("element {} is there, for which nothing has asked", element);
    }
    place->second = from_pe;
    --rounds_here.num_unknown;
  }
  if (elements.empty() || !rounds_here.has_begun) return misfit("no element is there");
  if (rounds_here.num_unknown != 0) return {};
  for (const TalkedTo& one : std::exchange(rounds_here.sent_away, {})) {
    base::Status status =
        rounds_here.decision.add_edge(one.from, one.to, rounds_here.places.at(one.to), one.bytes);
    if (!status.ok()) return status;
  }
  become_ready(collection);
  return {};
}

void SyncPoints::become_ready(Collection& collection) {
  runtime().send(decider(collection), make(collection, local(collection).step, SyncKind::kReady));
}

// --- Rounds

base::Status SyncPoints::on_rounds(Collection& collection) {
  LocalSync& here = local(collection);
  LocalRounds& rounds_here = rounds(collection);
  if (!rounds_here.has_begun || rounds_here.num_unknown != 0 || std::exchange(rounds_here.has_rounds, true)) {
    return misfit("the rounds of step {} begin, and this PE is not ready", here.step);
  }
  const auto ends_of = [](const LocalRounds::Heard& one) { return ends(one.talked); };
  std::vector<LocalRounds::Heard> heard = std::exchange(rounds_here.heard, {});
  std::ranges::sort(heard, {}, ends_of);
  for (std::size_t i = 0; i < heard.size(); ++i) {
    const auto& [talked, from_pe] = heard[i];
    if (i > 0 && ends_of(heard[i]) == ends_of(heard[i - 1])) {
      return misfit("what element {} has sent to element {} was told twice", talked.from, talked.to);
    }
    base::Status status = rounds_here.decision.add_edge(talked.to, talked.from, from_pe, talked.bytes);
    if (!status.ok()) return status;
  }
  const double time_s = rounds_here.ignores_background ? 0 : here.known_background_s;
  base::Status status = rounds_here.decision.begin(time_s, rounds_here.speed);
  return status.ok() ? run_rounds(collection) : status;
}

base::Status SyncPoints::on_state(Collection& collection, int from_pe, Pup& p) {
  std::uint64_t round = 0;
  double time_s = 0;
  double speed = 0;
  p | round | time_s | speed;
  base::Status status = rounds(collection).decision.on_state(from_pe, round, time_s, speed);
  return status.ok() ? run_rounds(collection) : status;
}

base::Status SyncPoints::on_proposal(Collection& collection, int from_pe, Pup& p) {
  std::uint64_t round = 0;
  balance::TransferProposal proposal;
  p | round | proposal.objects | proposal.edges;
  base::Status status = rounds(collection).decision.on_proposal(from_pe, round, std::move(proposal));
  return status.ok() ? run_rounds(collection) : status;
}

base::Status SyncPoints::run_rounds(Collection& collection) {
  LocalSync& here = local(collection);
  LocalRounds& rounds_here = rounds(collection);
  if (!rounds_here.has_rounds) return {};
  auto messages = rounds_here.decision.advance();
  if (!messages.ok()) return messages.status();
  for (const balance::PairMessage& one : *messages) {
    runtime().send(one.to_pe, one.proposal ? make(collection, here.step, SyncKind::kProposal, one.round,
                                                  one.proposal->objects, one.proposal->edges)
                                           : make(collection, here.step, SyncKind::kState, one.round,
                                                  one.state.time_s, one.state.speed));
  }
  return rounds_here.decision.is_over() && !here.has_plan ? end_rounds(collection) : base::Status();
}

// --- Moves

base::Status SyncPoints::end_rounds(Collection& collection) {
  LocalSync& here = local(collection);
  LocalRounds& rounds_here = rounds(collection);
  here.has_plan = true;
  here.num_expected = rounds_here.decision.num_arrivals();
  if (here.num_arrived > here.num_expected) {
    return misfit("{} elements are to come, {} have", here.num_expected, here.num_arrived);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - rounds_here.began;
  rounds_here.decision_s = taken.count();
  for (const balance::Arrivals& one : rounds_here.decision.arrivals()) {
    runtime().send(one.origin, make(collection, here.step, SyncKind::kTaken, one.objects));
  }
  for (const auto& [pe, elements] : std::exchange(rounds_here.taken_early, {})) {
    if (base::Status status = give_up(collection, pe, elements); !status.ok()) return status;
  }
  finish_plan(collection);
  return {};
}

base::Status SyncPoints::on_taken(Collection& collection, int from_pe, Pup& p) {
  std::vector<std::uint64_t> elements;
  p | elements;
  LocalRounds& rounds_here = rounds(collection);
  if (elements.empty() || !rounds_here.has_rounds) return misfit("it takes elements that were not given");
  if (!rounds_here.decision.is_over()) {
    if (rounds_here.taken_early.try_emplace(from_pe, std::move(elements)).second) return {};
    return misfit("it takes elements a second time");
  }
  if (base::Status status = give_up(collection, from_pe, elements); !status.ok()) return status;
  finish_plan(collection);
  return {};
}

base::Status SyncPoints::give_up(Collection& collection, int to_pe,
                                 const std::vector<std::uint64_t>& elements) {
  LocalRounds& rounds_here = rounds(collection);
  std::vector<PlannedMove> moves;
  moves.reserve(elements.size());
  for (const std::uint64_t element : elements) {
    if (base::Status status = rounds_here.decision.take(to_pe, element); !status.ok()) return status;
    moves.push_back({element, static_cast<std::uint64_t>(to_pe)});
  }
  return plan(collection, moves);
}

}  // namespace weft::chare
