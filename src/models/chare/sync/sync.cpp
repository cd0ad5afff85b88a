// Load balancing at sync points: at_sync(), the protocol between the PEs, and resume_from_sync(). The decider: sync/deciding.cpp;
// the moves: sync/moves.cpp.
//
// The PE that has made the collection decides: the decider. Every message carries the number of its step.
//
//   loads    All elements of a PE wait: the PE reports those that it has not reported yet, as a rule in one message. An element
//            that comes later from another PE is reported when it waits too. The decider counts elements, not PEs, so a PE
//            without elements reports nothing.
//   plan     All elements have been reported: the decider runs the strategy. Each PE that gives or takes elements gets its
//            moves and the number of elements that will come.
//   stays    An element has become unable to move since it was reported, or models are busy in it. Its new PE counts it as
//            come.
//   done     The PE has sent its elements and has got those that come.
//   resume   All PEs are done. Goes to all PEs: each element runs resume_from_sync().
//   background  Steps are over in which the PE has had no elements and has reported nothing: it tells its background load, unless it
//            is 0 still. Reports have it too. See sync/background.cpp.
//
// Strategies that are distributed have another way to the plan, see sync/rounds.cpp. Its end is the same.
//
// Invariants:
//   - An element that waits moves by the plan only, so the decider knows where it is.
//   - An element that runs may move, with its state (LoadOnTheMove). If its new PE has not heard of the last step's end, the
//     element is `early` there when it waits.
//   - The decider ends a step before it sends `resume`, so reports of the next step may arrive at once.
//   - A PE without elements may be steps behind. A later step's message brings it up to date (advance()).
//   - A collection that is destroyed drops this state with its elements. Messages that come later are dropped.
#include <algorithm>
#include <chrono>
#include <utility>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/elements/parts.h"
#include "models/chare/sync/local_sync.h"
#include "models/chare/sync/messages.h"
#include "models/chare/sync/sync_points.h"

namespace weft::chare {

using base::StatusCode;
using runtime::MessagePtr;

namespace {

// 31 years. Two of them are still a time.
constexpr std::int64_t kMostNs = 1'000'000'000'000'000'000;

bool is_load(double load_s) { return load_s >= 0 && load_s <= balance::kMaxLoadS; }

}  // namespace

// --- ChareBase

void ChareBase::at_sync() { collection_->chares().at_sync(*this); }

void ChareBase::set_load_s(std::optional<double> load_s) { collection_->chares().set_load_s(*this, load_s); }

void Chares::at_sync(ChareBase& chare) { parts_->sync->at_sync(chare); }

void Chares::set_load_s(ChareBase& chare, std::optional<double> load_s) {
  parts_->sync->set_load_s(chare, load_s);
}

// --- An element at the sync point

LocalSync& SyncPoints::local(Collection& collection) const {
  return collection.elements_->state<LocalSync>(number());
}

int SyncPoints::decider(const Collection& collection) { return static_cast<int>(collection.id() >> 32); }

void SyncPoints::at_sync(ChareBase& chare) {
  Collection& collection = chare.collection();
  collection.expect_alive();
  const auto refuse = [&chare](const char* why) {
    throw base::Error(StatusCode::kInvalidArgument,
                      base::format("{} cannot reach a sync point: {}", chare.where(), why));
  };
  if (chares_.parts_->losses != nullptr) [[unlikely]]
    chares_.parts_->losses->expect_all(base::format("a sync point of {}", collection.name()));
  if (collection.is_sparse())
    refuse("it belongs to a sparse array, which takes part in periodic load balancing only");
  if (collection.balancing() != Balancing::kAtSync) {
    refuse("its class does not override resume_from_sync(), which tells it that the step is over");
  }
  if (collection.find(chare.linear_index_) != &chare)
    refuse("call at_sync() after the constructor, and after created()");
  if (chare.load_->sync.phase != SyncPhase::kRuns) {
    refuse("it waits at one already; call at_sync() again in resume_from_sync() or later");
  }
  if (chare.move_to_ >= 0) {
    chare.load_->sync.phase = SyncPhase::kMovesFirst;
    chares_.move_again({collection.id(), chare.linear_index()});  // it may wait for an operation
  } else {
    wait(chare);
  }
}

void SyncPoints::set_load_s(ChareBase& chare, std::optional<double> load_s) {
  const Collection& collection = chare.collection();
  if (collection.balancing() == Balancing::kNone ||
      (collection.balancing() == Balancing::kAtSync && !collection.is_balanced())) {
    throw base::Error(
        StatusCode::kInvalidArgument,
        base::format("{} has no load: its collection takes no part in load balancing", chare.where()));
  }
  if (load_s && !is_load(*load_s)) {
    throw base::Error(StatusCode::kInvalidArgument,
                      base::format("the load of {} is set to {} s: give 0 to {} s", chare.where(), *load_s,
                                   balance::kMaxLoadS));
  }
  if (collection.is_balanced()) chare.load_->sync.set_load_s = load_s;  // else the job has no period
}

namespace {

// A step on this PE: from its first element that waits at the sync point until its elements continue.
runtime::SpanEvent span_of(const LocalSync& here) {
  return {.group = "load balancing",
          .name = "sync point",
          .number = reinterpret_cast<std::uintptr_t>(&here),
          .value = here.step};
}

}  // namespace

void SyncPoints::wait(ChareBase& chare) {
  Collection& collection = chare.collection();
  LocalSync& here = local(collection);
  ElementSync& sync = chare.load_->sync;
  sync.phase = SyncPhase::kWaits;
  if (sync.step > here.step) {
    here.early.push_back(chare.linear_index_);
    return;
  }
  if (sync.step < here.step) {
    return unfit(collection, decider(collection),
                 base::format("step {} has ended without element {}", sync.step, chare.linear_index_));
  }
  if (here.num_waiting == 0 && runtime().observer() != nullptr) [[unlikely]]
    runtime().observer()->span_began(span_of(here));
  ++here.num_waiting;
  here.unreported.push_back(chare.linear_index_);
  here.device_mark = 0;
  post_report(collection);
}

void SyncPoints::post_report(Collection& collection) {
  LocalSync& here = local(collection);
  if (here.unreported.empty() || here.num_waiting != collection.num_local()) return;
  post(collection);
}

void SyncPoints::post(Collection& collection) {
  LocalSync& here = local(collection);
  if (here.is_posted) return;
  here.is_posted = true;
  runtime().count_sent();  // for quiescence, as a message
  posted_.push_back(collection.id());
  if (posted_.size() == 1 && !runtime().closed()) runtime().post(&work_);
}

void SyncPoints::report_posted() {
  for (const std::uint64_t id : std::exchange(posted_, {})) {
    runtime().count_processed();
    if (!runtime().stopped()) report(chares_.collection(id));
  }
}

bool SyncPoints::can_move(const ChareBase& chare) {
  const Collection& collection = chare.collection();
  return collection.can_move() && !chare.is_pinned() && chare.num_suspended() == 0 &&
         chare.runtime().obstacle_to_moving({collection.id(), chare.linear_index()}).ok();
}

void SyncPoints::report(Collection& collection) {
  if (!collection.created_) return;  // destroyed
  LocalSync& here = local(collection);
  here.is_posted = false;
  send_empty_report(collection);
  if (here.unreported.empty() || here.num_waiting != collection.num_local()) return;
  if (waits_for_devices(collection)) return;
  here.has_reported = true;
  here.known_background_s = background_s(collection);
  runtime().turn_meter().begin_step();
  if (options_.decides_together()) return report_waiting(collection);
  std::uint64_t has_set_loads = 0;
  std::vector<ReportedLoad> loads;
  std::vector<ReportedMessages> messages;
  loads.reserve(here.unreported.size());
  for (const std::uint64_t index : here.unreported) {
    ChareBase& chare = *collection.find(index);
    if (chare.load_->sync.set_load_s) has_set_loads = 1;
    loads.push_back(take_load(collection, chare));
    take_messages(chare, loads.size() - 1, messages);
  }
  here.unreported.clear();
  runtime().send(decider(collection), make(collection, here.step, SyncKind::kLoads, here.known_background_s,
                                           has_set_loads, std::exchange(here.pace, {}), loads, messages));
}

ReportedLoad SyncPoints::take_load(Collection& collection, ChareBase& chare) {
  ElementLoad& load = *chare.load_;
  const double device_load_s = load.device_load_s();
  const ReportedLoad reported{chare.linear_index_, std::min(load.load_s(), balance::kMaxLoadS),
                              can_move(chare) ? 1U : 0U,
                              std::min(load.sync.set_load_s.value_or(device_load_s), balance::kMaxLoadS)};
  local(collection).work_ns += nanoseconds(load);
  runtime().turn_meter().add_load(reported.load_s);
  Pace& pace = local(collection).pace;
  if (!load.sync.set_load_s || load.device != nullptr) {
    pace.add_measured();
  } else {
    pace.add(load.sync.reported_load_s, load.seconds());
  }
  load.sync.reported_load_s = load.sync.set_load_s.value_or(0);
  load.reset();
  if (load.device != nullptr) load.device->reset();
  return reported;
}

Pace SyncPoints::take_pace(Collection& collection) { return std::exchange(local(collection).pace, {}); }

void SyncPoints::take_messages(ChareBase& chare, std::uint64_t position,
                               std::vector<ReportedMessages>& messages) {
  if (chare.load_->messages == nullptr) return;
  for (const SentTo& sent : chare.load_->messages->sorted()) messages.push_back({position, sent});
  chare.load_->messages->clear();
}

// --- Messages

void SyncPoints::unfit(const Collection& collection, int from_pe, std::string_view what) {
  runtime().fail(
      base::format("PE {} has sent a message of load balancing of {} that does not fit on PE {}: {}; do all "
                   "PEs run the same program?",
                   from_pe, collection.name(), runtime().pe(), what));
}

Collection* SyncPoints::receive(MessagePtr& message, Balancing mode, Pup& p, BalancingHeader& header) {
  p | header;
  const auto from_pe = static_cast<int>(message->envelope().source_pe);
  Collection& target = chares_.collection(header.collection);
  if (target.destroyed_) return nullptr;
  if (!target.created_) {
    target.elements_->waiting.push_back(std::move(message));
    return nullptr;
  }
  if (from_pe < 0 || from_pe >= runtime().num_pes()) {
    unfit(target, from_pe, "there is no such PE");
    return nullptr;
  }
  if (!target.is_balanced() || target.balancing() != mode) {
    unfit(target, from_pe, "the collection does not take part here; is WEFT_LB_PERIOD the same on each PE?");
    return nullptr;
  }
  return &target;
}

void SyncPoints::on_message(MessagePtr message) {
  BalancingHeader header;
  Pup p = message->unpacker();
  Collection* const target = receive(message, Balancing::kAtSync, p, header);
  if (target == nullptr) return;
  const auto from_pe = static_cast<int>(message->envelope().source_pe);
  const auto kind = static_cast<SyncKind>(header.kind);
  const bool is_of_rounds = kind >= SyncKind::kWaiting && kind <= SyncKind::kOver;
  const bool is_of_both = kind == SyncKind::kStays || kind == SyncKind::kResume || kind > SyncKind::kOver;
  if (!is_of_both && is_of_rounds != options_.decides_together()) {
    return unfit(*target, from_pe,
                 base::format("it is of a step that {}; are WEFT_LB and WEFT_LB_RECORD the same on each PE?",
                              is_of_rounds ? "the PEs decide together" : "one PE decides"));
  }
  const base::Status status = is_of_rounds ? on_rounds_message(*target, header, from_pe, p)
                                           : on_step_message(*target, header, from_pe, p);
  if (!status.ok()) unfit(*target, from_pe, status.message());
}

base::Status SyncPoints::on_step_message(Collection& collection, const BalancingHeader& header, int from_pe,
                                         Pup& p) {
  switch (static_cast<SyncKind>(header.kind)) {
    case SyncKind::kLoads:
      return on_loads(collection, header.number, from_pe, p);
    case SyncKind::kPlan:
      return on_plan(collection, header.number, from_pe, p);
    case SyncKind::kStays:
      return on_stays(collection, header.number);
    case SyncKind::kDone:
      return on_done(collection, header.number, from_pe, p);
    case SyncKind::kResume:
      return on_resume(collection, header.number, from_pe);
    case SyncKind::kBackground:
      return on_background(collection, from_pe, p);
    default:
      return misfit("there is no kind {}", header.kind);
  }
}

// --- The end of the step

base::Status SyncPoints::on_resume(Collection& collection, std::uint64_t step, int from_pe) {
  if (from_pe != decider(collection)) return misfit("another PE decides");
  LocalSync& here = local(collection);
  if (step < here.step) return {};  // a message of a later step has overtaken this one
  if (step > here.step && here.num_waiting != 0) return misfit("the end of step {}", step);
  std::vector<std::uint64_t> waiting;
  collection.elements_->directory.for_each([&waiting, step](std::uint64_t index, ChareBase& chare) {
    ElementSync& sync = chare.load_->sync;
    if (sync.phase != SyncPhase::kWaits || sync.step != step) return;
    sync.phase = SyncPhase::kRuns;
    ++sync.step;
    waiting.push_back(index);
  });
  if (waiting.size() != here.num_waiting || !here.unreported.empty()) {
    return misfit("the end of step {}, in which an element has not been reported", step);
  }
  if (here.num_waiting != 0 && runtime().observer() != nullptr) [[unlikely]]
    runtime().observer()->span_ended(span_of(here));
  here.num_waiting = 0;
  advance(collection, step + 1);
  std::sort(waiting.begin(), waiting.end());
  for (const std::uint64_t index : waiting) {
    if (ChareBase* const chare = collection.find(index)) resume(*chare);
    if (runtime().stopped()) return {};
  }
  return {};
}

void SyncPoints::resume(ChareBase& chare) {
  const runtime::WorkMeter::Span span(runtime().meter(), *chare.load_);
  try {
    chare.resume_from_sync();
  } catch (...) {
    return runtime().fail_unawaited(std::current_exception(), chare.where() + " in resume_from_sync()");
  }
  chare.run_ready_calls();
}

// --- Elements that move

bool SyncPoints::measures(const Collection& made) const {
  return made.balancing() == Balancing::kAtSync && !made.is_sparse();
}

base::Status SyncPoints::obstacle(const ChareBase& chare) const {
  if (chare.load_ == nullptr || chare.load_->sync.phase == SyncPhase::kRuns) return {};
  return {StatusCode::kInvalidArgument,
          "it waits at a sync point; call migrate() in resume_from_sync() or later"};
}

void SyncPoints::pack(const ChareBase& chare, Pup& p) const {
  std::optional<LoadOnTheMove> load;
  if (chare.load_ != nullptr) load = load_on_the_move(chare);
  p | load;
}

LoadOnTheMove SyncPoints::load_on_the_move(const ChareBase& chare) {
  const auto measured = std::chrono::duration_cast<std::chrono::nanoseconds>(chare.load_->time());
  LoadOnTheMove load{chare.load_->sync, std::min<std::int64_t>(measured.count(), kMostNs)};
  if (measured.count() > 0) load.sync.reported_load_s = 0;  // the new PE has not worked for it
  if (chare.load_->messages != nullptr) load.sent = chare.load_->messages->sorted();
  load.device_s = std::min(chare.load_->device_load_s(), balance::kMaxLoadS);
  return load;
}

void SyncPoints::stayed(ChareBase& chare) {
  if (chare.load_ != nullptr && chare.load_->sync.phase == SyncPhase::kMovesFirst) wait(chare);
}

void SyncPoints::left(Collection& from, const ChareBase& chare) {
  if (chare.load_ == nullptr) return;
  local(from).work_ns += nanoseconds(*chare.load_);
  if (chare.load_->sync.phase == SyncPhase::kWaits) --local(from).num_waiting;
  post_report(from);
}

bool SyncPoints::arrived(ChareBase& chare, Pup& p, int from_pe) {
  std::optional<LoadOnTheMove> load;
  p | load;
  Collection& collection = chare.collection();
  LocalSync& here = local(collection);
  const auto wrong = [&](const char* what) {
    unfit(collection, from_pe, base::format("element {} has come, {}", chare.linear_index_, what));
    return false;
  };
  if (load.has_value() != (chare.load_ != nullptr))
    return wrong("with and without a load (WEFT_LB_PERIOD must be the same on all PEs)");
  if (!load) return true;
  const ElementSync& sync = load->sync;
  if (sync.phase > SyncPhase::kWaits || load->measured_ns < 0 || load->measured_ns > kMostNs ||
      !is_load(sync.set_load_s.value_or(0)) || !is_load(sync.reported_load_s) || !is_load(load->device_s) ||
      !SentMessages::are_valid(load->sent, chare.linear_index_, collection.shape().size())) {
    return wrong("with a load that is none");
  }
  if (sync.step < here.step) return wrong("from a step that is over");
  chare.load_->sync = sync;
  chare.load_->add(std::chrono::nanoseconds(load->measured_ns));
  if (chare.load_->messages != nullptr) chare.load_->messages->restore(load->sent);
  if (load->device_s > 0) chare.load_->device_time(runtime()).add(load->device_s);
  here.work_ns -= static_cast<std::uint64_t>(load->measured_ns);  // other PEs have worked for it
  if (sync.phase == SyncPhase::kMovesFirst) wait(chare);
  if (sync.phase != SyncPhase::kWaits) return true;
  if (!advance(collection, sync.step)) return wrong("from a later step");
  ++here.num_waiting;
  if (++here.num_arrived > here.num_expected && here.has_plan) return wrong("and was not to");
  finish_plan(collection);
  return true;
}

}  // namespace weft::chare
