// Large values of reductions for all PEs: deferred by the exchange, then cut, or sent when the exchange is repeated.
#include <algorithm>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/messenger.h"
#include "weft/runtime/runtime.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/collective/deferred_value.h"
#include "runtime/collective/large_merges.h"
#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

namespace {

// More parts than a plan has steps: on 2^31 PEs of 2^31 hosts about 130.
constexpr std::size_t kMostAhead = 256;

// The elements are out of band.
struct CutHeader {
  std::uint64_t scope_id = 0;
  std::uint64_t sequence = 0;
  std::uint32_t root_pe = 0;
  std::uint32_t step = 0;
};
static_assert(sizeof(CutHeader) == 24);

CutHeader read_cut(Message& message) {
  CutHeader header;
  message.unpacker().expect(sizeof header);
  std::memcpy(&header, message.payload(), sizeof header);
  return header;
}

[[noreturn]] void refuse_part(int from_pe, int pe, const char* what) {
  base::refuse_claim(base::format("a part of a large value came from PE {} to PE {} {}", from_pe, pe, what));
}

// The memory lives until the buffer is released.
Attachment attach_shared(const std::shared_ptr<CutMemory>& memory, std::byte* data, std::size_t size_bytes) {
  return {memory::Buffer{data, size_bytes, {}, nullptr},
          [](void* owner, const memory::Buffer&) { delete static_cast<std::shared_ptr<CutMemory>*>(owner); },
          new std::shared_ptr<CutMemory>(memory)};
}

std::byte* at_element(const DeferredValue& deferred, const ElementRange& range) {
  return deferred.elements().data() + range.first * deferred.layout.element_bytes;
}
std::size_t size_of(const DeferredValue& deferred, const ElementRange& range) {
  return range.count * deferred.layout.element_bytes;
}

// Whether the values of all PEs can be merged element by element, and no other contribution has come. `merged`: of the whole
// exchange.
bool can_be_cut(const Partial& merged, std::span<const DeferredDescription> all, int num_pes) {
  std::uint64_t contributions = 0;
  for (const DeferredDescription& one : all) contributions += one.contributions;
  return all.size() == static_cast<std::size_t>(num_pes) && !merged.has_value &&
         contributions == merged.count &&
         std::ranges::all_of(all, [&](const DeferredDescription& one) { return one.is_like(all[0]); });
}

}  // namespace

// --- Memory

std::vector<std::byte> Reductions::large_memory(std::size_t size_bytes) {
  std::vector<std::byte> memory = large_memory_->take(size_bytes);
  memory.resize(size_bytes);
  return memory;
}

std::vector<std::byte> large_contribution_memory(Runtime& runtime, std::size_t size_bytes) {
  return runtime.reductions().large_memory(size_bytes);
}

// --- What is deferred

DeferredValue& Reductions::deferred_value_at(ScopeId id, std::uint64_t sequence) {
  std::unique_ptr<DeferredValue>& found = deferred_values_[key_of(id, sequence)];
  if (found == nullptr) found = std::make_unique<DeferredValue>();
  return *found;
}

void Reductions::forget_deferred_values(ScopeId id) {
  deferred_values_.erase(deferred_values_.lower_bound(key_of(id, 0)),
                         deferred_values_.upper_bound(key_of(id, ~std::uint64_t{0})));
}

DeferredValue& Reductions::defer_value(ScopeId id, std::uint64_t sequence, Partial& mine,
                                       const ElementLayout& layout, std::uint64_t contributions) {
  DeferredValue& deferred = deferred_value_at(id, sequence);
  deferred.layout = layout;
  deferred.reducer = mine.reducer;
  deferred.combiner_id = mine.combiner_id & ~kDeferredBit;
  deferred.contributions = contributions;
  const DeferredDescription description = describe(mine.value, layout, contributions, messenger_.pe());
  deferred.memory = std::make_shared<CutMemory>(large_memory_);
  deferred.memory->value = std::exchange(mine.value, {});
  mine.has_value = false;
  mine.combiner_id |= kDeferredBit;
  const auto* const bytes = reinterpret_cast<const std::byte*>(&description);
  mine.items.insert(mine.items.end(), bytes, bytes + sizeof description);
  return deferred;
}

void Reductions::defer_in_exchange(ScopeId id, const Scope& scope, Progress& progress) {
  if (progress.sequence < scope.first_deferring) return;
  Partial& mine = progress.merged;
  const ElementLayout layout = layout_of(mine);
  if (layout.merge == nullptr ||
      (mine.value.size() < kLeastCutBytes &&
       !takes_merge(id, progress.sequence, mine.value.size() - layout.first_element)))
    return;
  defer_value(id, progress.sequence, mine, layout, mine.count);
}

void Reductions::use_deferred_values(ScopeId id, Scope& scope, Progress& progress) {
  DeferredValue& deferred = deferred_value_at(id, progress.sequence);
  if (deferred.way != DeferredValue::Way::kUnknown) return;  // a late contribution has come
  const std::vector<DeferredDescription> all = read_descriptions(progress.merged.items, messenger_.num_pes());
  if (all.empty()) {
    messenger_.fail(
        base::format("PE {} got damaged descriptions of the values of a reduction", messenger_.pe()));
    return;
  }
  if (deferred.memory == nullptr || !can_be_cut(progress.merged, all, messenger_.num_pes()))
    return begin_repeat(id, scope, progress, deferred);
  if (takes_merge(id, progress.sequence, deferred.elements().size()))
    return start_merge(id, progress.sequence, deferred, -1);
  deferred.way = DeferredValue::Way::kCut;
  const std::size_t num_elements = deferred.elements().size() / deferred.layout.element_bytes;
  deferred.steps = plan_cut(messenger_.pe(), messenger_.num_pes(), messenger_.host_groups(), num_elements);
  std::size_t most_bytes = 0;
  for (const CutStep& step : deferred.steps) {
    if (step.merges) most_bytes = std::max(most_bytes, size_of(deferred, step.received));
  }
  std::vector<std::byte>& arriving = deferred.memory->arriving;
  arriving = large_memory_->take(most_bytes);
  if (arriving.size() < most_bytes) arriving.resize(most_bytes);
  run_cut(id, scope, progress, deferred);
}

Progress* Reductions::find_exchange(ScopeId id, std::uint64_t sequence, const Message& message) {
  Scope* const scope = open_scope(id, nullptr);
  if (scope == nullptr) return nullptr;
  Progress* const progress = scope->progress.find(sequence);
  if (progress == nullptr || !progress->exchanges || progress->step < 0)
    refuse_part(static_cast<int>(message.envelope().source_pe), messenger_.pe(), "before its description");
  return progress;
}

// --- The exchange is repeated

void Reductions::begin_repeat(ScopeId id, Scope& scope, Progress& progress, DeferredValue& deferred) {
  deferred.way = DeferredValue::Way::kRepeat;
  scope.pause_deferring(progress.sequence);
  Progress& again = deferred.again;
  again.sequence = progress.sequence;
  again.exchanges = true;
  again.step = 0;
  Partial& merged = progress.merged;
  std::uint64_t deferred_contributions = 0;
  for (const DeferredDescription& one : read_descriptions(merged.items, messenger_.num_pes()))
    deferred_contributions += one.contributions;
  merged.items.clear();
  // `merged` keeps the bit until the repeat is over: its count is too small meanwhile, and nothing may end it.
  const std::uint32_t combiner_id = merged.combiner_id & ~kDeferredBit;
  merged.count -= std::min(merged.count, deferred_contributions);
  Partial& mine = again.merged;
  // All PEs have the value that is merged of contributions which were not deferred. PE 0 alone brings it into the repeat.
  if (messenger_.pe() == 0 && merged.count > 0) mine.assign(merged.view());
  mine.combiner_id = combiner_id;
  mine.has_target = merged.has_target;
  mine.target = merged.target;
  if (deferred.memory != nullptr) {
    mine.add(messenger_, {deferred.contributions,
                          merged.reducer,
                          combiner_id,
                          true,
                          deferred.memory->value,
                          {},
                          merged.has_target ? &merged.target : nullptr});
    deferred.memory.reset();
  }
  run_repeat(id, scope, progress, deferred);
}

void Reductions::run_repeat(ScopeId id, Scope& scope, Progress& progress, DeferredValue& deferred) {
  if (!run_steps<kReductionRepeatHandler>(id, scope, deferred.again)) return;
  std::swap(progress.merged, deferred.again.merged);
  deferred_values_.erase(key_of(id, progress.sequence));
  finish_exchange(id, scope, progress);
}

// --- The values are cut

void Reductions::run_cut(ScopeId id, Scope& scope, Progress& progress, DeferredValue& deferred) {
  for (; deferred.step < deferred.steps.size(); ++deferred.step) {
    const CutStep& step = deferred.steps[deferred.step];
    if (!std::exchange(deferred.has_sent, true) && step.sent.count > 0)
      send_part(id, progress.sequence, deferred, step);
    if (step.received.count > 0) {
      if (!deferred.has_landed) return land_part(deferred, step);
      if (step.merges) {
        std::byte* const mine = at_element(deferred, step.received);
        const std::byte* const theirs = deferred.memory->arriving.data();
        deferred.layout.merge(progress.merged.reducer, mine, step.in_front ? theirs : mine,
                              step.in_front ? mine : theirs, step.received.count);
      }
    }
    deferred.has_sent = deferred.is_landing = deferred.has_landed = false;
  }
  finish_cut(id, scope, progress);
}

void Reductions::send_part(ScopeId id, std::uint64_t sequence, const DeferredValue& deferred,
                           const CutStep& step) {
  const CutHeader header{id.id, sequence, id.root_pe, static_cast<std::uint32_t>(step.number)};
  MessagePtr message = Message::create(messenger_, kReductionCutHandler, sizeof header);
  std::memcpy(message->payload(), &header, sizeof header);
  message->attach(
      attach_shared(deferred.memory, at_element(deferred, step.sent), size_of(deferred, step.sent)));
  messenger_.send(step.peer, std::move(message));
}

namespace {

bool is_part_of(const CutStep& step, const CutHeader& header, const Message& message) {
  return static_cast<std::uint32_t>(step.number) == header.step &&
         static_cast<std::uint32_t>(step.peer) == message.envelope().source_pe;
}

void choose_place(DeferredValue& deferred, const CutStep& step, std::span<ReceiveBuffer> receive_buffers,
                  int pe) {
  const std::size_t size_bytes = size_of(deferred, step.received);
  if (receive_buffers.size() != 1 || receive_buffers[0].size_bytes != size_bytes)
    refuse_part(step.peer, pe, "with a wrong size");
  std::byte* const place =
      step.merges ? deferred.memory->arriving.data() : at_element(deferred, step.received);
  receive_buffers[0].into = attach_shared(deferred.memory, place, size_bytes);
  deferred.is_landing = true;
}

}  // namespace

void Reductions::land_part(DeferredValue& deferred, const CutStep& step) {
  if (deferred.is_landing) return;
  const auto found = std::ranges::find_if(deferred.ahead, [&](const MessagePtr& message) {
    return is_part_of(step, read_cut(*message), *message);
  });
  if (found == deferred.ahead.end()) return;
  MessagePtr message = std::move(*found);
  deferred.ahead.erase(found);
  std::vector<ReceiveBuffer> receive_buffers = messenger_.receive_buffers_of(*message);
  choose_place(deferred, step, receive_buffers, messenger_.pe());
  messenger_.place(std::move(message), receive_buffers);
}

Posting Reductions::post_part(MessagePtr& message, std::span<ReceiveBuffer> receive_buffers) {
  const CutHeader header = read_cut(*message);
  const ScopeId id{header.root_pe, header.scope_id};
  check_scope(id, messenger_);
  const Progress* const progress = find_exchange(id, header.sequence, *message);
  if (progress == nullptr) return Posting::kDrop;
  DeferredValue& deferred = deferred_value_at(id, header.sequence);
  const int from_pe = static_cast<int>(message->envelope().source_pe);
  const bool may_be_cut =
      deferred.way == DeferredValue::Way::kUnknown || deferred.way == DeferredValue::Way::kCut;
  if (!may_be_cut || deferred.memory == nullptr)
    refuse_part(from_pe, messenger_.pe(), "that does not fit the exchange");
  if (deferred.way == DeferredValue::Way::kCut && deferred.step < deferred.steps.size()) {
    const CutStep& step = deferred.steps[deferred.step];
    if (is_part_of(step, header, *message) && !deferred.is_landing && step.received.count > 0) {
      choose_place(deferred, step, receive_buffers, messenger_.pe());
      return Posting::kHandle;
    }
  }
  const bool is_known = std::ranges::any_of(deferred.ahead, [&](const MessagePtr& other) {
    return read_cut(*other).step == header.step &&
           other->envelope().source_pe == message->envelope().source_pe;
  });
  // A part of a step that is over, or that does not exist, stays there until the reduction is over, and is refused then.
  if (is_known) refuse_part(from_pe, messenger_.pe(), "a second time");
  if (deferred.ahead.size() >= kMostAhead) refuse_part(from_pe, messenger_.pe(), "beyond all steps");
  deferred.ahead.push_back(std::move(message));
  return Posting::kDefer;
}

void Reductions::on_part(const MessagePtr& message) {
  const CutHeader header = read_cut(*message);
  const ScopeId id{header.root_pe, header.scope_id};
  if (!message->was_posted())
    refuse_part(static_cast<int>(message->envelope().source_pe), messenger_.pe(), "without elements");
  const auto found = deferred_values_.find(key_of(id, header.sequence));
  if (found == deferred_values_.end()) return;  // the scope has been closed
  Scope& scope = scope_at(id);
  Progress* const progress = scope.progress.find(header.sequence);
  if (progress == nullptr) return;
  found->second->has_landed = true;
  run_cut(id, scope, *progress, *found->second);
}

void Reductions::finish_cut(ScopeId id, Scope& scope, Progress& progress) {
  const auto found = deferred_values_.find(key_of(id, progress.sequence));
  if (const auto& ahead = found->second->ahead; !ahead.empty()) {
    refuse_part(static_cast<int>(ahead.front()->envelope().source_pe), messenger_.pe(),
                "for a step that it does not have");
  }
  const std::shared_ptr<CutMemory> memory = std::move(found->second->memory);
  deferred_values_.erase(found);
  Partial& merged = progress.merged;
  merged.items.clear();
  merged.combiner_id &= ~kDeferredBit;
  merged.has_value = true;
  if (merged.count >= scope.total) {
    // The memory stays here: parts of it may still be on their way.
    std::swap(merged.value, memory->value);
    if (merged.has_target) deliver(merged, true);
    std::swap(merged.value, memory->value);
    merged.has_target = false;
  } else if (static_cast<int>(id.root_pe) == messenger_.pe()) {
    merged.value = memory->value;
  }
  finish_exchange(id, scope, progress);
}

}  // namespace weft::runtime
