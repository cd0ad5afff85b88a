#include "runtime/collective/reductions.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "weft/runtime/future.h"
#include "weft/runtime/messenger.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/collective/deferred_value.h"
#include "runtime/collective/large_merges.h"
#include "runtime/collective/reducer_failure.h"
#include "runtime/message/handlers.h"
#include "runtime/tree/spanning_tree.h"

namespace weft::runtime {

namespace {

struct PartialHeader {
  ScopeId scope;
  std::uint64_t sequence = 0;
  bool done = false;
  void pup(Pup& p) { p | scope.root_pe | scope.id | sequence | done; }
};

SpanningTree tree_of(const Messenger& messenger, ScopeId scope) {
  return SpanningTree(static_cast<int>(scope.root_pe), messenger.pe(), messenger.num_pes(),
                      messenger.host_groups());
}

SpanEvent span_of(ScopeId id, std::uint64_t sequence) {
  const std::uint64_t number = ScopeIdHash()(id) + sequence * 0xd6e8feb86659fd93;
  return {.group = "collectives", .name = "reduction", .number = number, .value = sequence};
}

}  // namespace

void check_scope(ScopeId scope, const Messenger& messenger) {
  if (scope.root_pe < static_cast<std::uint32_t>(messenger.num_pes())) return;
  base::refuse_claim(base::format("a partial result belongs to a reduction rooted at PE {} of {}",
                                  scope.root_pe, messenger.num_pes()));
}

namespace reduction_detail {

void throw_length_mismatch(std::size_t a, std::size_t b) {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("vectors of {} and {} elements were contributed to one reduction; all must have the "
                   "same length, or use Reducer::kGather",
                   a, b));
}

}  // namespace reduction_detail

Reductions::~Reductions() = default;

Reductions::Reductions(Messenger& messenger)
    : messenger_(messenger),
      large_memory_(std::make_shared<LargeMemory>()),
      least_deferred_bytes_(kLeastCutBytes) {
  messenger_.set_handler(
      kReductionPartialHandler,
      [](void* context, MessagePtr message) {
        static_cast<Reductions*>(context)->on_partial(std::move(message));
      },
      this);
  messenger_.set_handler(
      kReductionEmptyHandler,
      [](void* context, MessagePtr message) {
        static_cast<Reductions*>(context)->on_empty(std::move(message));
      },
      this);
  messenger_.set_handler(
      kReductionExchangeHandler,
      [](void* context, MessagePtr message) {
        static_cast<Reductions*>(context)->on_exchange(std::move(message));
      },
      this);
  messenger_.set_handler(
      kReductionRepeatHandler,
      [](void* context, MessagePtr message) {
        static_cast<Reductions*>(context)->on_repeat(std::move(message));
      },
      this);
  messenger_.set_handler(
      kReductionDecisionHandler,
      [](void* context, MessagePtr message) { static_cast<Reductions*>(context)->on_decision(message); },
      this);
  messenger_.set_handler(
      kReductionCutHandler,
      [](void* context, MessagePtr message) { static_cast<Reductions*>(context)->on_part(message); }, this);
  messenger_.set_poster(
      kReductionCutHandler,
      [](void* context, MessagePtr& message, std::span<ReceiveBuffer> receive_buffers) {
        return static_cast<Reductions*>(context)->post_part(message, receive_buffers);
      },
      [](void* context, Message& message) {
        Messenger& messenger = static_cast<Reductions*>(context)->messenger_;
        messenger.fail(base::format("PE {} could not send its part of a reduction to PE {}",
                                    message.envelope().source_pe, messenger.pe()));
      });
}

// --- What is kept

Reductions::Scope& Reductions::find_or_make_scope(ScopeId id) {
  latest_id_ = id;
  latest_ = &scopes_[id];
  return *latest_;
}

Reductions::Scope* Reductions::find_scope(ScopeId id) {
  if (latest_ != nullptr && latest_id_ == id) return latest_;
  auto found = scopes_.find(id);
  if (found == scopes_.end()) return nullptr;
  latest_id_ = id;
  latest_ = &found->second;
  return latest_;
}

void Reductions::forget_scope(ScopeId id) {
  latest_ = nullptr;
  if (!deferred_values_.empty()) [[unlikely]]
    forget_deferred_values(id);
  scopes_.erase(id);
}

// --- Closed scopes

void Reductions::set_closed_function(ClosedFunction function, void* context) {
  closed_function_ = function;
  closed_context_ = context;
}

void Reductions::set_name_function(NameFunction function, void* context) {
  name_function_ = function;
  name_context_ = context;
}

std::string Reductions::merged_contributors() const {
  return name_function_ == nullptr ? std::string() : name_function_(name_context_, latest_id_);
}

std::string merged_contributors(const Messenger& messenger) {
  const void* const reductions = messenger.handler_context(kReductionPartialHandler);
  return reductions == nullptr ? std::string()
                               : static_cast<const Reductions*>(reductions)->merged_contributors();
}

void Reductions::close(ScopeId id, const std::string& why) {
  Scope* const scope = find_scope(id);
  if (scope == nullptr) return;
  for (const std::uint64_t sequence : scope->progress.sequences()) {
    const Progress& progress = *scope->progress.find(sequence);
    if (progress.merged.has_target) give_up(progress.merged.target, why);
  }
  bool may_merge = false;
  for (auto one = deferred_values_.lower_bound(key_of(id, 0));
       one != deferred_values_.upper_bound(key_of(id, ~std::uint64_t{0})); ++one) {
    if (one->second->merged_target) give_up(*one->second->merged_target, why);
    may_merge |= one->second->memory != nullptr;
  }
  forget_scope(id);
  if (large_merges_ != nullptr) large_merges_->close(id, may_merge);
}

Reductions::Scope* Reductions::open_scope(ScopeId id, const Partial* partial) {
  if (Scope* const known = find_scope(id); known != nullptr) return known;
  base::Status open;
  if (closed_function_ != nullptr) open = closed_function_(closed_context_, id);
  if (open.ok()) return &find_or_make_scope(id);
  if (partial != nullptr && partial->has_target) give_up(partial->target, std::string(open.message()));
  return nullptr;
}

void Reductions::give_up_all(const std::exception_ptr& error) {
  for (auto& [id, scope] : scopes_) {
    for (const std::uint64_t sequence : scope.progress.sequences()) {
      const Progress& progress = *scope.progress.find(sequence);
      if (progress.merged.has_target) give_up(progress.merged.target, error);
    }
  }
  for (const auto& [key, value] : deferred_values_) {
    if (value->merged_target) give_up(*value->merged_target, error);
  }
}

void Reductions::give_up(const Target& target, const std::string& why) {
  give_up(target, std::make_exception_ptr(base::Error(base::StatusCode::kClosed, why)));
}

void Reductions::give_up(const Target& target, const std::exception_ptr& error) {
  if (target.handler != kFutureSetHandler || (target.flags & kBroadcastFlag) != 0) return;
  try {
    const auto header = base::unpack<FutureSetHeader>(target.prefix);
    messenger_.send(static_cast<int>(target.pe),
                    pack_future_error(messenger_, {header.id, FutureSetHeader::kErrorUnlessSet}, error));
  } catch (...) {  // a damaged target
    messenger_.fail_unawaited(std::current_exception(), "the target of a reduction");
  }
}

// --- Contributions

void Reductions::open(ScopeId id, std::uint64_t total, std::uint64_t local_contributors, bool single,
                      Route route) {
  Scope& scope = scope_at(id);
  scope.is_open = true;
  scope.single = single;
  scope.total = total;
  scope.local_contributors = local_contributors;
  scope.route = single || messenger_.num_pes() == 1 ? Route::kTree : route;
  if (scope.has_tree_only()) {
    for (const std::uint64_t sequence : scope.progress.sequences())
      scope.progress.find(sequence)->exchanges = false;
  }
  advance_all(id);
}

void Reductions::contribute(ScopeId id, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                            const Combiner* combiner, std::span<const std::byte> value,
                            const Target& target) {
  contribute_value(id, sequence, index, reducer, combiner, value, target);
}

void Reductions::contribute_large(ScopeId id, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                                  const Combiner* combiner, std::vector<std::byte>&& value,
                                  const Target& target) {
  contribute_value(id, sequence, index, reducer, combiner, std::move(value), target);
  // If the value was not copied this is what the reduction had before.
  large_memory_->keep(std::move(value));  // NOLINT(bugprone-use-after-move)
}

template <class Value>
inline void Reductions::contribute_value(ScopeId id, std::uint64_t sequence, std::uint64_t index,
                                         Reducer reducer, const Combiner* combiner, Value&& value,
                                         const Target& target) {
  Scope& scope = scope_at(id);
  if (sequence < scope.first_unflushed) [[unlikely]] {
    Partial mine;
    add_to(mine, index, reducer, combiner, std::forward<Value>(value), target);
    send_up(id, sequence, false, mine);
    return;
  }
  Progress& progress = scope.progress.at(sequence);
  if (++progress.local_contributions == 1 && messenger_.observer() != nullptr) [[unlikely]]
    observe_begin(id, sequence);
  const bool exchanges = scope.exchanges(target);
  if (exchanges != progress.exchanges) {
    if (!exchanges) return fail_different_targets(messenger_);
    progress.exchanges = true;
  }
  Partial& into = progress.step < 0 ? progress.merged : progress.late;
  add_to(into, index, reducer, combiner, std::forward<Value>(value), target);
  // The rest is for the last contribution of this PE, and for later ones.
  if (progress.local_contributions < scope.expected(sequence) && into.count < scope.total) return;
  advance_from(id, scope, progress);
}

void Reductions::observe_begin(ScopeId id, std::uint64_t sequence) const {
  messenger_.observer()->span_began(span_of(id, sequence));
}

// This PE's part is over.
void Reductions::forget(ScopeId id, Scope& scope, Progress& progress) const {
  if (progress.local_contributions != 0 && messenger_.observer() != nullptr) [[unlikely]]
    messenger_.observer()->span_ended(span_of(id, progress.sequence));
  scope.progress.forget(progress);
}

void Reductions::on_partial(MessagePtr message) {
  Pup p = message->unpacker();
  PartialHeader header;
  Partial partial;
  p | header | partial;
  check_scope(header.scope, messenger_);
  Scope* const known = open_scope(header.scope, &partial);
  if (known == nullptr) return;
  Scope& scope = *known;
  if (header.sequence < scope.first_unflushed) {
    send_up(header.scope, header.sequence, false, partial);
    return;
  }
  Progress& progress = scope.progress.at(header.sequence);
  // A contribution that came late elsewhere may be here before this PE has a part of the exchange.
  if (progress.step < 0 && partial.has_target && scope.exchanges(partial.target)) progress.exchanges = true;
  if (header.done) ++progress.children_done;
  progress.has_foreign_value |= partial.has_value;
  Partial& into = progress.step < 0 ? progress.merged : progress.late;
  into.add(messenger_, partial.view());
  advance_from(header.scope, scope, progress);
}

void Reductions::on_empty(MessagePtr message) {
  ScopeId id;
  Pup p = message->unpacker();
  p | id.root_pe | id.id;
  check_scope(id, messenger_);
  Scope* const scope = open_scope(id, nullptr);
  if (scope == nullptr) return;
  ++scope->empty_children;
  advance_all(id);
}

// Any step may forget the scope.
void Reductions::advance_all(ScopeId id) {
  Scope& scope = scope_at(id);
  const std::vector<std::uint64_t> sequences = scope.progress.sequences();
  advance_empty_report(id, scope);
  for (std::uint64_t sequence : sequences) advance(id, sequence);
}

void Reductions::advance(ScopeId id, std::uint64_t sequence) {
  Scope* const scope = find_scope(id);
  Progress* const progress = scope == nullptr ? nullptr : scope->progress.find(sequence);
  if (progress != nullptr) advance_from(id, *scope, *progress);
}

void Reductions::advance_from(ScopeId id, Scope& scope, Progress& first) {
  Progress* progress = &first;
  while (progress != nullptr) {
    const std::uint64_t next = progress->sequence + 1;
    if (!advance_one(id, scope, *progress)) return;
    progress = scope.progress.find(next);
  }
}

bool Reductions::advance_one(ScopeId id, Scope& scope, Progress& progress) {
  if (!scope.is_open || progress.is_abandoned()) return false;
  if (progress.exchanges) return advance_exchange(id, scope, progress);
  SpanningTree tree = tree_of(messenger_, id);
  if (tree.is_root()) {
    if (progress.merged.count < scope.total) return false;
    if (progress.merged.defers_values()) [[unlikely]] {
      if (!decide_deferred(id, scope, progress)) return false;
    } else {
      deliver(progress.merged, false);
    }
    scope.forget_arrivals(progress.sequence + 1);
    forget(id, scope, progress);
    if (scope.single) forget_scope(id);
    return false;
  }
  // In order only: a partial may overtake an earlier, larger one on its way here.
  const std::uint64_t sequence = progress.sequence;
  if (!is_next(id, scope, sequence) || progress.local_contributions < scope.expected(sequence) ||
      progress.children_done + scope.empty_children < tree.num_children()) {
    return false;
  }
  if (progress.merged.value.size() >= least_deferred_bytes_) [[unlikely]]
    defer_in_tree(id, scope, progress);
  send_up(id, sequence, true, progress.merged);
  forget(id, scope, progress);
  scope.first_unflushed = sequence + 1;
  scope.forget_arrivals(scope.first_unflushed);
  if (!scope.single) return true;
  forget_scope(id);
  return false;
}

void Reductions::advance_empty_report(ScopeId id, Scope& scope) {
  SpanningTree tree = tree_of(messenger_, id);
  // A contributor that has moved here and begins later does not count: the parent would wait in vain.
  if (!scope.is_open || scope.empty_reported || scope.expected(scope.first_unflushed) > 0 || tree.is_root() ||
      scope.empty_children < tree.num_children()) {
    return;
  }
  scope.empty_reported = true;
  // The root waits for contributions, not for children, and may have forgotten the scope by now.
  if (tree.parent() == static_cast<int>(id.root_pe)) {
    if (scope.single) forget_scope(id);
    return;
  }
  MessagePtr message = Message::pack(messenger_, kReductionEmptyHandler, id.root_pe, id.id);
  message->envelope().flags |= kControlFlag;
  messenger_.send(tree.parent(), std::move(message));
  if (scope.single) forget_scope(id);
}

// --- Contributors that move

std::uint64_t Reductions::Scope::num_later(std::uint64_t sequence) const {
  std::uint64_t later = 0;
  for (auto one = arrivals.upper_bound(sequence); one != arrivals.end(); ++one) later += one->second;
  return later;
}

bool Reductions::is_next(ScopeId id, Scope& scope, std::uint64_t sequence) {
  if (sequence == scope.first_unflushed) [[likely]]
    return true;
  if (sequence < scope.first_unflushed || scope.empty_children < tree_of(messenger_, id).num_children() ||
      scope.expected(sequence - 1) != 0) {
    return false;
  }
  // An exchange under way has passed this PE's part on already.
  const std::uint64_t first = scope.first_unflushed;
  if (std::ranges::any_of(scope.progress.sequences(),
                          [=](std::uint64_t other) { return first <= other && other < sequence; })) {
    return false;
  }
  scope.first_unflushed = sequence;
  scope.forget_arrivals(sequence);
  return true;
}

void Reductions::contributor_left(ScopeId id, std::uint64_t first_here) {
  Scope* const scope = find_scope(id);
  if (scope == nullptr || scope->local_contributors == 0) return;
  --scope->local_contributors;
  if (const auto own = scope->arrivals.find(first_here); own != scope->arrivals.end() && --own->second == 0) {
    scope->arrivals.erase(own);
  }
  advance_all(id);
}

void Reductions::contributor_arrived(ScopeId id, std::uint64_t first) {
  Scope& scope = scope_at(id);
  ++scope.local_contributors;
  if (first > scope.first_unflushed) ++scope.arrivals[first];
}

void Reductions::contribute_directly(ScopeId id, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                                     const Combiner* combiner, std::span<const std::byte> value,
                                     const Target& target) {
  Partial mine;
  add_to(mine, index, reducer, combiner, value, target);
  send_to_root(id, sequence, mine);
}

void Reductions::send_to_root(ScopeId id, std::uint64_t sequence, const Partial& partial) {
  const PartialHeader header{id, sequence, false};
  messenger_.send(static_cast<int>(id.root_pe),
                  Message::pack(messenger_, kReductionPartialHandler, header, partial));
}

void Reductions::send_up(ScopeId id, std::uint64_t sequence, bool done, const Partial& partial) {
  PartialHeader header{id, sequence, done};
  MessagePtr message = Message::pack(messenger_, kReductionPartialHandler, header, partial);
  if (id.id < kFirstModelScope) message->envelope().flags |= kControlFlag;
  messenger_.send(tree_of(messenger_, id).parent(), std::move(message));
}

void Reductions::set_result_function(HandlerId handler, ResultFunction function, void* context) {
  result_handler_ = handler;
  result_function_ = function;
  result_context_ = context;
}

void Reductions::deliver(Partial& partial, bool to_this_pe) {
  Target& target = partial.target;
  const std::span<const std::byte> result = partial.result(messenger_);
  if (partial.is_abandoned) [[unlikely]]
    return;
  if (!to_this_pe) return messenger_.deliver(target, result);
  if (target.handler != result_handler_) {
    target.flags &= static_cast<std::uint8_t>(~kBroadcastFlag);
    target.pe = static_cast<std::uint32_t>(messenger_.pe());
    return messenger_.deliver(target, result);
  }
  try {
    result_function_(result_context_, target.prefix, result);
  } catch (...) {
    messenger_.fail_unawaited(std::current_exception(), "the result of a reduction");
  }
}

}  // namespace weft::runtime
