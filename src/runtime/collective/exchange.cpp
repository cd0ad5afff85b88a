// Reductions whose result all PEs get, by recursive doubling.
#include <bit>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/messenger.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/collective/deferred_value.h"
#include "runtime/collective/exchange_plan.h"
#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

namespace {

// In front of the value and the items, and of the target if there is one. With its envelope and a value of 8 bytes it takes one cell of a
// ring (src/machine/host_queue/message_ring.h).
struct ExchangeHeader {
  std::uint64_t scope_id = 0;
  std::uint64_t sequence = 0;
  std::uint64_t count : 48 = 0;
  std::uint64_t step : 8 = 0;
  std::uint64_t reducer : 6 = 0;
  std::uint64_t has_value : 1 = 0;
  std::uint64_t has_target : 1 = 0;  // the target's size follows, as a TargetSize, and the target
  std::uint64_t value_bytes = 0;
  std::uint32_t root_pe = 0;
  std::uint32_t combiner_id = 0;
};
static_assert(sizeof(ExchangeHeader) == 40);
static_assert(ExchangePlan::kMaxSteps < 1 << 8 && static_cast<int>(Reducer::kCustom) < 1 << 6);
using TargetSize = std::uint32_t;

ExchangeHeader read_exchange(Message& message) {
  ExchangeHeader header;
  message.unpacker().expect(sizeof header);
  std::memcpy(&header, message.payload(), sizeof header);
  return header;
}

// What a part consists of. Throws Error(kCorrupt) if the message is too short for what it names.
struct ExchangeData {
  ExchangeData(Message& message, const ExchangeHeader& header) {
    Pup p = message.unpacker();
    p.skip(sizeof header);
    TargetSize target_bytes = 0;
    if (header.has_target != 0) p | target_bytes;
    target = take(p, target_bytes);
    value = take(p, header.value_bytes);
    items = {p.cursor(), p.remaining_bytes()};
  }
  static std::span<const std::byte> take(Pup& p, std::uint64_t size_bytes) {
    p.expect(size_bytes);
    const std::span<const std::byte> taken(p.cursor(), size_bytes);
    p.skip(size_bytes);
    return taken;
  }
  std::span<const std::byte> target;
  std::span<const std::byte> value;
  std::span<const std::byte> items;
};

// REQUIRES: the message has been checked. `target`: memory for the one that the view names.
PartialView view_of(Message& message, Target& target) {
  const ExchangeHeader header = read_exchange(message);
  const ExchangeData data(message, header);
  if (header.has_target != 0) target = base::unpack<Target>(data.target);
  return {header.count,
          static_cast<Reducer>(header.reducer),
          header.combiner_id,
          header.has_value != 0,
          data.value,
          data.items,
          header.has_target == 0 ? nullptr : &target};
}

[[noreturn, gnu::cold]] void refuse(const Message& message, int pe, const char* what) {
  base::refuse_claim(base::format("a part of a reduction came from PE {} to PE {} {}",
                                  message.envelope().source_pe, pe, what));
}

inline void expect_fitting(Message& message, const ExchangeHeader& header, const ExchangePlan& plan, int pe) {
  const auto step = static_cast<int>(header.step);
  if (step >= plan.num_steps() || plan.peer(step) != static_cast<int>(message.envelope().source_pe) ||
      !plan.receives(step)) {
    refuse(message, pe, "that does not fit the exchange");
  }
  const ExchangeData data(message, header);
  if (header.has_target != 0 && (base::unpack<Target>(data.target).flags & kBroadcastFlag) == 0)
    refuse(message, pe, "whose target is not all PEs");
}

inline void keep_arrived(Progress& progress, int step, MessagePtr&& message, const ExchangePlan& plan,
                         int pe) {
  if (progress.arrived.empty()) progress.arrived.resize(static_cast<std::size_t>(plan.num_steps()));
  MessagePtr& slot = progress.arrived[static_cast<std::size_t>(step)];
  if (slot != nullptr || step < progress.step) refuse(*message, pe, "a second time");
  slot = std::move(message);
}

}  // namespace

void Reductions::on_exchange(MessagePtr message) {
  const ExchangeHeader header = read_exchange(*message);
  const ScopeId id{header.root_pe, header.scope_id};
  check_scope(id, messenger_);
  const int pe = messenger_.pe();
  const ExchangePlan plan(pe, messenger_.num_pes(), messenger_.host_groups());
  const auto step = static_cast<int>(header.step);
  expect_fitting(*message, header, plan, pe);
  Scope* const known = open_scope(id, nullptr);
  if (known == nullptr) return;
  Scope& scope = *known;
  if (header.sequence < scope.first_unflushed && scope.progress.find(header.sequence) == nullptr) {
    // This PE has sent its part up the tree, or has ended the exchange. If contributors move, it may have skipped the
    // reduction, having nothing to give, and takes part now. Different targets meet at the root then.
    if (scope.route != Route::kMovingExchange) return fail_different_targets(messenger_);
    scope.progress.at(header.sequence).step = 0;
  }
  Progress& progress = scope.progress.at(header.sequence);
  if (!progress.exchanges && progress.local_contributions > 0) return fail_different_targets(messenger_);
  progress.exchanges = true;
  keep_arrived(progress, step, std::move(message), plan, pe);
  advance_from(id, scope, progress);
}

void Reductions::on_repeat(MessagePtr message) {
  const ExchangeHeader header = read_exchange(*message);
  const ScopeId id{header.root_pe, header.scope_id};
  check_scope(id, messenger_);
  const int pe = messenger_.pe();
  const ExchangePlan plan(pe, messenger_.num_pes(), messenger_.host_groups());
  expect_fitting(*message, header, plan, pe);
  Progress* const progress = find_exchange(id, header.sequence, *message);
  if (progress == nullptr) return;
  DeferredValue& deferred = deferred_value_at(id, header.sequence);
  if (deferred.way != DeferredValue::Way::kUnknown && deferred.way != DeferredValue::Way::kRepeat)
    refuse(*message, pe, "that does not fit the exchange");
  keep_arrived(deferred.again, static_cast<int>(header.step), std::move(message), plan, pe);
  if (deferred.way == DeferredValue::Way::kRepeat) run_repeat(id, scope_at(id), *progress, deferred);
}

bool Reductions::advance_exchange(ScopeId id, Scope& scope, Progress& progress) {
  const std::uint64_t sequence = progress.sequence;
  bool next_may_advance = false;
  if (progress.step < 0) {
    if (progress.local_contributions < scope.expected(sequence)) return false;
    if (static_cast<int>(id.root_pe) != messenger_.pe()) {
      if (!is_next(id, scope, sequence)) return false;
      // Further contributions on this PE are late: they go to the root.
      scope.first_unflushed = sequence + 1;
      scope.forget_arrivals(scope.first_unflushed);
      next_may_advance = true;
    }
    progress.step = 0;
    if (progress.merged.value.size() >= least_deferred_bytes_) [[unlikely]]
      defer_in_exchange(id, scope, progress);
  }
  if (run_steps<kReductionExchangeHandler>(id, scope, progress)) finish_exchange(id, scope, progress);
  return next_may_advance;
}

// Returns whether all steps are done.
template <HandlerId kHandler>
bool Reductions::run_steps(ScopeId id, const Scope& scope, Progress& progress) {
  // A repeat may begin with a merge, which fails if the reducer does.
  if (progress.is_abandoned()) return false;
  const ExchangePlan plan(messenger_.pe(), messenger_.num_pes(), messenger_.host_groups());
  for (; progress.step < plan.num_steps(); ++progress.step) {
    const int step = progress.step;
    const int peer = plan.peer(step);
    if (peer < 0) continue;
    if (plan.sends(step) && !std::exchange(progress.sent, true))
      send_step<kHandler>(id, scope, progress, peer);
    if (plan.receives(step)) {
      const auto slot = static_cast<std::size_t>(step);
      if (slot >= progress.arrived.size() || progress.arrived[slot] == nullptr) return false;
      merge_step(progress, peer, plan.replaces(step));
      if (progress.is_abandoned()) return false;
    }
    progress.sent = false;
  }
  return true;
}

template bool Reductions::run_steps<kReductionRepeatHandler>(ScopeId, const Scope&, Progress&);

template <HandlerId kHandler>
void Reductions::send_step(ScopeId id, const Scope& scope, const Progress& progress, int peer) {
  const Partial& part = progress.merged;
  std::vector<std::byte> target;
  if (scope.route == Route::kMovingExchange && part.has_target) target = base::pack(part.target);
  const auto target_bytes = static_cast<TargetSize>(target.size());
  const ExchangeHeader header{.scope_id = id.id,
                              .sequence = progress.sequence,
                              .count = part.count,
                              .step = static_cast<std::uint64_t>(progress.step),
                              .reducer = static_cast<std::uint64_t>(part.reducer),
                              .has_value = part.has_value ? 1U : 0U,
                              .has_target = target.empty() ? 0U : 1U,
                              .value_bytes = part.value.size(),
                              .root_pe = id.root_pe,
                              .combiner_id = part.combiner_id};
  MessagePtr message =
      Message::create(messenger_, kHandler,
                      sizeof header + (target.empty() ? 0 : sizeof target_bytes + target.size()) +
                          part.value.size() + part.items.size());
  std::byte* to = message->payload();
  std::memcpy(to, &header, sizeof header);
  to += sizeof header;
  if (!target.empty()) {
    std::memcpy(to, &target_bytes, sizeof target_bytes);
    to = std::copy(target.begin(), target.end(), to + sizeof target_bytes);
  }
  std::copy(part.items.begin(), part.items.end(), std::copy(part.value.begin(), part.value.end(), to));
  messenger_.send(peer, std::move(message));
}

void Reductions::merge_step(Progress& progress, int peer, bool replaces) {
  const MessagePtr arrived = std::move(progress.arrived[static_cast<std::size_t>(progress.step)]);
  Target target;
  const PartialView theirs = view_of(*arrived, target);
  Partial& mine = progress.merged;
  if (replaces) {
    mine.assign(theirs);  // it has this PE's part
  } else if (peer > messenger_.pe()) {
    mine.add(messenger_, theirs);
  } else {
    // The part of the lower PE comes first on both, so that all PEs get the same result to the last bit.
    mine.add_in_front(messenger_, theirs, progress.scratch);
  }
}

void Reductions::finish_exchange(ScopeId id, Scope& scope, Progress& progress) {
  Partial& merged = progress.merged;
  if (merged.defers_values()) [[unlikely]]
    return use_deferred_values(id, scope, progress);
  const bool all_here = merged.count >= scope.total;
  if (all_here) {
    if (merged.has_target) deliver(merged, true);
  } else if (static_cast<int>(id.root_pe) == messenger_.pe()) {
    if (merged.count + progress.late.count < scope.total) return;
    merged.add(messenger_, progress.late.view());
    if (merged.is_abandoned) return;
    deliver(merged, false);
  }
  // Discards what a peer has sent for a repeat of this reduction, because there was no repeat.
  if (!deferred_values_.empty()) [[unlikely]]
    deferred_values_.erase(key_of(id, progress.sequence));
  scope.forget_arrivals(progress.sequence + 1);
  forget(id, scope, progress);
}

}  // namespace weft::runtime
