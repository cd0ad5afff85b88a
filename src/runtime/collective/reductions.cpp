#include "runtime/collective/reductions.h"

#include <algorithm>

#include "weft/runtime/messenger.h"

#include "base/format.h"
#include "runtime/collective/reducer_failure.h"
#include "runtime/collective/spanning_tree.h"
#include "runtime/handlers.h"

namespace weft::runtime {

namespace {

constexpr std::uint32_t kNoCombiner = ~std::uint32_t{0};

struct PartialHeader {
  ScopeId scope;
  std::uint64_t sequence = 0;
  bool done = false;
  void pup(Pup& p) { p | scope.root_pe | scope.id | sequence | done; }
};

SpanningTree tree_of(const Messenger& messenger, ScopeId scope) {
  return SpanningTree(static_cast<int>(scope.root_pe), messenger.pe(), messenger.num_pes());
}

// A peer has named it.
void check_scope(ScopeId scope, const Messenger& messenger) {
  if (scope.root_pe < static_cast<std::uint32_t>(messenger.num_pes())) return;
  throw base::Error(
      base::StatusCode::kCorrupt,
      base::format("a partial result belongs to a reduction rooted at PE {} of {}; do all PEs run "
                   "the same program?",
                   scope.root_pe, messenger.num_pes()));
}

}  // namespace

namespace reduction_detail {

void throw_length_mismatch(std::size_t a, std::size_t b) {
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("vectors of {} and {} elements were contributed to one reduction; all must have the "
                   "same length, or use Reducer::kGather",
                   a, b));
}

}  // namespace reduction_detail

Reductions::Reductions(Messenger& messenger) : messenger_(messenger) {
  messenger_.set_handler(
      kReductionPartialHandler,
      [](void* context, MessagePtr message) {
        static_cast<Reductions*>(context)->on_partial(std::move(message));
      },
      this);
  messenger_.set_handler(
      kReductionSilentHandler,
      [](void* context, MessagePtr message) {
        static_cast<Reductions*>(context)->on_silent(std::move(message));
      },
      this);
}

void Reductions::open(ScopeId id, std::uint64_t total, std::uint64_t local_contributors, bool single) {
  Scope& scope = scopes_[id];
  scope.is_open = true;
  scope.single = single;
  scope.total = total;
  scope.local_contributors = local_contributors;
  advance_all(id);
}

void Reductions::contribute(ScopeId id, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                            const Combiner* combiner, std::span<const std::byte> value,
                            const Target& target) {
  Partial mine;
  mine.count = 1;
  mine.reducer = reducer;
  mine.combiner_id = combiner == nullptr ? kNoCombiner : combiner->id;
  mine.target = target;
  if (combiner == nullptr) {
    mine.items.push_back({index, {value.begin(), value.end()}});
  } else {
    mine.has_value = true;
    mine.value.assign(value.begin(), value.end());
  }
  Scope& scope = scopes_[id];
  if (sequence < scope.first_unflushed) {
    send_up(id, sequence, false, mine);
    return;
  }
  Progress& progress = scope.progress[sequence];
  ++progress.local_contributions;
  merge(id, progress.merged, std::move(mine));
  advance(id, sequence);
}

void Reductions::on_partial(MessagePtr message) {
  Pup p = message->unpacker();
  PartialHeader header;
  Partial partial;
  p | header | partial;
  check_scope(header.scope, messenger_);
  Scope& scope = scopes_[header.scope];
  if (header.sequence < scope.first_unflushed) {
    send_up(header.scope, header.sequence, false, partial);
    return;
  }
  Progress& progress = scope.progress[header.sequence];
  if (header.done) ++progress.children_done;
  merge(header.scope, progress.merged, std::move(partial));
  advance(header.scope, header.sequence);
}

void Reductions::on_silent(MessagePtr message) {
  ScopeId id;
  Pup p = message->unpacker();
  p | id.root_pe | id.id;
  check_scope(id, messenger_);
  Scope& scope = scopes_[id];
  ++scope.silent_children;
  advance_all(id);
}

// Any step may forget the scope.
void Reductions::advance_all(ScopeId id) {
  Scope& scope = scopes_[id];
  std::vector<std::uint64_t> sequences;
  for (auto& [sequence, progress] : scope.progress) sequences.push_back(sequence);
  advance_silence(id, scope);
  for (std::uint64_t sequence : sequences) advance(id, sequence);
}

void Reductions::merge(ScopeId id, Partial& into, Partial&& from) {
  if (from.count == 0) return;
  if (into.count == 0) {
    into = std::move(from);
    return;
  }
  if (into.reducer != from.reducer || into.combiner_id != from.combiner_id) {
    messenger_.fail(base::format(
        "contributors to one reduction (scope {} of PE {}) name different reducers or types; each "
        "element must call contribute in the same order with the same reducer",
        id.id, id.root_pe));
    return;
  }
  into.count += from.count;
  std::move(from.items.begin(), from.items.end(), std::back_inserter(into.items));
  if (!from.has_value) return;
  const Combiner* combiner = Registry<Combiner>::find(into.combiner_id);
  if (combiner == nullptr) {
    messenger_.fail(base::format(
        "a contribution names reducer {}, which PE {} does not have; do all PEs run the same program?",
        into.combiner_id, messenger_.pe()));
    return;
  }
  try {
    combiner->function(messenger_.runtime(), into.reducer, into.value, from.value);
  } catch (...) {
    fail_in_reducer(messenger_,
                    into.reducer == Reducer::kCustom ? combiner->name : reducer_name(into.reducer),
                    std::current_exception());
  }
}

void Reductions::advance(ScopeId id, std::uint64_t sequence) {
  auto known = scopes_.find(id);
  if (known == scopes_.end()) return;
  Scope& scope = known->second;
  auto found = scope.progress.find(sequence);
  if (found == scope.progress.end() || !scope.is_open) return;
  Progress& progress = found->second;
  SpanningTree tree = tree_of(messenger_, id);
  if (tree.is_root()) {
    if (progress.merged.count < scope.total) return;
    Partial complete = std::move(progress.merged);
    scope.progress.erase(found);
    if (scope.single) scopes_.erase(id);
    deliver(std::move(complete));
    return;
  }
  // In order only: a partial may overtake an earlier, larger one on its way here.
  if (sequence != scope.first_unflushed || progress.local_contributions < scope.local_contributors ||
      progress.children_done + scope.silent_children < tree.num_children()) {
    return;
  }
  send_up(id, sequence, true, progress.merged);
  scope.progress.erase(found);
  scope.first_unflushed = sequence + 1;
  if (scope.single) {
    scopes_.erase(id);
  } else {
    advance(id, sequence + 1);
  }
}

void Reductions::advance_silence(ScopeId id, Scope& scope) {
  SpanningTree tree = tree_of(messenger_, id);
  if (!scope.is_open || scope.silence_reported || scope.local_contributors > 0 || tree.is_root() ||
      scope.silent_children < tree.num_children()) {
    return;
  }
  scope.silence_reported = true;
  // The root waits for contributions, not for children, and may have forgotten the scope by now.
  if (tree.parent() == static_cast<int>(id.root_pe)) {
    if (scope.single) scopes_.erase(id);
    return;
  }
  MessagePtr message = Message::pack(messenger_, kReductionSilentHandler, id.root_pe, id.id);
  message->envelope().flags |= kControlFlag;
  messenger_.send(tree.parent(), std::move(message));
  if (scope.single) scopes_.erase(id);
}

void Reductions::send_up(ScopeId id, std::uint64_t sequence, bool done, const Partial& partial) {
  PartialHeader header{id, sequence, done};
  MessagePtr message = Message::pack(messenger_, kReductionPartialHandler, header, partial);
  if (id.id < kFirstModelScope) message->envelope().flags |= kControlFlag;
  messenger_.send(tree_of(messenger_, id).parent(), std::move(message));
}

void Reductions::deliver(Partial&& partial) {
  if (partial.reducer != Reducer::kGather && partial.reducer != Reducer::kConcat) {
    messenger_.deliver(partial.target, partial.value);
    return;
  }
  std::sort(partial.items.begin(), partial.items.end(),
            [](const Item& a, const Item& b) { return a.index < b.index; });
  // Both come out as a packed std::vector: an element count, then the elements. A concat's contributions are
  // packed vectors themselves, whose counts are added up and left out.
  std::size_t skip = partial.reducer == Reducer::kConcat ? sizeof(std::uint64_t) : 0;
  std::uint64_t count = 0;
  std::vector<std::byte> result(sizeof count);
  for (const Item& item : partial.items) {
    if (item.value.size() < skip) {
      throw base::Error(base::StatusCode::kCorrupt,
                        base::format("a contribution of {} bytes to a concatenation holds no element count; "
                                     "contribute vectors",
                                     item.value.size()));
    }
    count += skip == 0 ? 1 : base::unpack<std::uint64_t>({item.value.data(), skip});
    result.insert(result.end(), item.value.begin() + static_cast<std::ptrdiff_t>(skip), item.value.end());
  }
  std::copy_n(reinterpret_cast<const std::byte*>(&count), sizeof count, result.begin());
  messenger_.deliver(partial.target, result);
}

}  // namespace weft::runtime
