// Calls that wait for the condition of their entry method, see weft/chare/when.h.
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/chare/chare.h"
#include "weft/chare/chares.h"
#include "weft/chare/outcome.h"
#include "weft/runtime/registry.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "models/chare/elements/parts.h"
#include "models/chare/elements/postponed_calls.h"
#include "models/chare/elements/waiting_list.h"

namespace weft::chare {

std::string WaitingCall::method_name() const { return short_name_of(*entry_); }

std::optional<std::uint64_t> WaitingCall::key_of(ChareBase&) const { return std::nullopt; }

bool WaitingCall::has_changed(ChareBase&, std::shared_ptr<void>&) const { return true; }

void WaitingCall::pup_arguments(Pup&) {}

void WaitingCall::send_on(Collection&, std::uint64_t) {}

void ElementLoad::resumed() {
  if (conditional != nullptr) conditional->run_ready_calls();
}

// --- On one PE

std::size_t ChareBase::num_waiting_calls() const {
  return waiting_calls_ == nullptr ? 0 : waiting_calls_->size();
}

bool ChareBase::postpones_calls() const { return waiting_calls_->is_postponed; }

std::vector<WaitingCall*> ChareBase::waiting_calls() const {
  return waiting_calls_ == nullptr ? std::vector<WaitingCall*>() : waiting_calls_->all();
}

void ChareBase::add_waiting_call(std::unique_ptr<WaitingCall> call, bool was_asked) {
  if (collection_->is_destroyed()) return collection_->chares().parts_->refuse_waiting_call(*this, *call);
  if (waiting_calls_ == nullptr) waiting_calls_ = std::make_unique<WaitingCalls>();
  waiting_calls_->add(*this, std::move(call), was_asked);
}

void ChareBase::run_ready_calls_now() {
  WaitingCalls& waiting = *waiting_calls_;
  if (waiting.is_asking || waiting.is_postponed) return;
  runtime::WorkMeter& meter = runtime().meter();
  std::optional<runtime::WorkMeter::Span> span;
  if (load_ != nullptr && meter.running() != load_) span.emplace(meter, *load_);
  waiting.is_asking = true;
  int calls_left = WaitingCalls::kCallsPerTurn;
  while (!runtime().ending() && waiting.begin_first(*this)) {
    if (--calls_left == 0 && !waiting.empty()) {
      waiting.is_postponed = true;
      collection_->chares().parts_->postponed_calls.add({collection_->id(), linear_index_});
      break;
    }
  }
  waiting.is_asking = false;
  if (waiting.empty()) waiting_calls_.reset();
}

void PostponedCalls::add(runtime::ElementId element) {
  chares_.runtime().count_sent();
  elements_.push_back(element);
  if (elements_.size() == 1 && !chares_.runtime().closed()) chares_.runtime().post_for_next_turn(&work_);
}

void PostponedCalls::run() {
  runtime::Runtime& runtime = chares_.runtime();
  for (const runtime::ElementId element : std::exchange(elements_, {})) {
    runtime.count_processed();
    if (!runtime.stopped()) chares_.parts_->run_postponed_calls(element);
  }
}

void Chares::Parts::run_postponed_calls(runtime::ElementId element) {
  ChareBase* const chare = chares_.collection(element.collection).find(element.index);
  if (chare == nullptr || chare->waiting_calls_ == nullptr) return;
  chare->waiting_calls_->is_postponed = false;
  chare->run_ready_calls();
}

// --- Chares that move

void Chares::Parts::reply_directly(ChareBase& chare) {
  for (WaitingCall* const call : chare.waiting_calls()) {
    ReplyTo reply = call->reply();
    if (reply.kind != ReplyTo::Kind::kGather || reply.is_direct()) continue;
    // As in forward(): this PE does not wait for its outcome any more.
    runtime_.reductions().contributor_left({reply.pe, kGatherScopes | reply.id}, 0);
    reply.id |= ReplyTo::kDirectly;
    call->set_reply(reply);
  }
}

std::uint32_t Chares::Parts::num_behind_state(const ChareBase& chare) {
  std::uint32_t count = 0;
  for (const WaitingCall* const call : chare.waiting_calls()) {
    if (call->travel() == WaitingCall::Travel::kBehindState) ++count;
  }
  return count;
}

void Chares::Parts::pack_waiting_calls(ChareBase& chare, Pup& p) {
  for (WaitingCall* const call : chare.waiting_calls()) {
    if (call->travel() != WaitingCall::Travel::kBehindState) continue;
    p | call->entry().id | call->reply();
    call->pup_arguments(p);
  }
}

void Chares::Parts::unpack_waiting_calls(ChareBase& chare, std::uint32_t count, Pup& p) {
  for (std::uint32_t i = 0; i < count; ++i) {
    std::uint32_t entry_id = 0;
    ReplyTo reply;
    p | entry_id | reply;
    const EntryInfo* const entry = runtime::Registry<EntryInfo>::find(entry_id);
    if (entry == nullptr || entry->type != chare.collection().type() || entry->unpack_waiting == nullptr ||
        !reply.is_valid(runtime_.num_pes())) {
      base::refuse_claim(
          base::format("a call of entry method {} waits in it, which it cannot have", entry_id));
    }
    chare.add_waiting_call(entry->unpack_waiting(p, reply));
  }
}

void Chares::Parts::forward_waiting_calls(ChareBase& chare) {
  if (chare.waiting_calls_ == nullptr) return;
  const std::unique_ptr<WaitingCalls> left = std::move(chare.waiting_calls_);
  for (WaitingCall* const call : left->all()) {
    if (call->travel() == WaitingCall::Travel::kAlone) call->send_on(chare.collection(), chare.linear_index_);
  }
}

// --- Collections that are destroyed

void Chares::Parts::refuse_waiting_calls(ChareBase& chare) {
  if (chare.waiting_calls_ == nullptr) return;
  const std::unique_ptr<WaitingCalls> left = std::move(chare.waiting_calls_);
  for (const WaitingCall* const call : left->all()) refuse_waiting_call(chare, *call);
}

void Chares::Parts::refuse_waiting_call(ChareBase& chare, const WaitingCall& call) {
  const Collection& from = chare.collection();
  const std::string why = base::format(
      "a call of {}.{} still waits for its condition: {}. Await all calls before chares_.destroy()",
      from.element_name(chare.linear_index_), call.method_name(), from.why_gone());
  if (call.reply().kind == ReplyTo::Kind::kNone) {
    runtime_.fail(base::format("PE {}: {}", runtime_.pe(), why));
    return;
  }
  const std::exception_ptr error = std::make_exception_ptr(base::Error(base::StatusCode::kClosed, why));
  if (call.reply().kind == ReplyTo::Kind::kGather) {  // this PE has the chare's part of the results
    const auto pack = [&error](Pup& p) {
      p | true;
      runtime::pack_error(p, error);
    };
    Pup sizer = Pup::sizer(&runtime_);
    pack(sizer);
    std::vector<std::byte> outcome(sizer.offset_bytes());
    Pup p = Pup::packer(outcome.data(), outcome.size(), &runtime_);
    pack(p);
    return chares_.contribute_outcome(call.reply(), chare, outcome);
  }
  using runtime::FutureSetHeader;
  runtime_.send(static_cast<int>(call.reply().pe),
                runtime::pack_future_error(runtime_, {call.reply().id, FutureSetHeader::kError}, error));
}

}  // namespace weft::chare
