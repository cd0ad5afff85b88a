// Large values that LargeMerges merges: of exchanges, and of reductions up the tree.
#include <algorithm>
#include <exception>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/messenger.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/collective/deferred_value.h"
#include "runtime/collective/large_merges.h"
#include "runtime/collective/reductions.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

namespace {

// From the root of the tree to all PEs: what becomes of the values that were deferred.
struct Decision {
  ScopeId scope;
  std::uint64_t sequence = 0;
  bool merges = false;  // otherwise they are sent to the root
  Target target;        // if it merges
  void pup(Pup& p) { p | scope.root_pe | scope.id | sequence | merges | target; }
};

std::uint64_t sum_of_contributions(std::span<const DeferredDescription> all) {
  std::uint64_t sum = 0;
  for (const DeferredDescription& one : all) sum += one.contributions;
  return sum;
}

[[noreturn]] void refuse_decision(const Message& message, int pe, const char* what) {
  base::refuse_claim(base::format("PE {} tells PE {} to merge a value of a reduction {}",
                                  message.envelope().source_pe, pe, what));
}

}  // namespace

void Reductions::set_large_merges(LargeMerges* merges) {
  large_merges_ = merges;
  least_deferred_bytes_ =
      merges == nullptr ? kLeastCutBytes : std::min(kLeastCutBytes, merges->least_bytes());
}

bool Reductions::takes_merge(ScopeId id, std::uint64_t sequence, std::size_t size_bytes) const {
  return large_merges_ != nullptr && large_merges_->takes(id, sequence, size_bytes);
}

void Reductions::start_merge(ScopeId id, std::uint64_t sequence, DeferredValue& deferred, int target_pe) {
  deferred.way = DeferredValue::Way::kMerge;
  large_merges_->start({.scope = id,
                        .sequence = sequence,
                        .reducer = deferred.reducer,
                        .layout = deferred.layout,
                        .elements = deferred.elements(),
                        .target_pe = target_pe,
                        .memory = deferred.memory});
}

void Reductions::end_merge(ScopeId id, std::uint64_t sequence, const std::exception_ptr& error) {
  const auto found = deferred_values_.find(key_of(id, sequence));
  if (found == deferred_values_.end()) return;
  if (error != nullptr) return messenger_.fail_unawaited(error, "the merge of a large value of a reduction");
  if (found->second->is_in_tree) {
    const std::unique_ptr<DeferredValue> deferred = std::move(found->second);
    deferred_values_.erase(found);
    return finish_merged_tree(*deferred);
  }
  Scope& scope = scope_at(id);
  Progress* const progress = scope.progress.find(sequence);
  if (progress != nullptr) finish_cut(id, scope, *progress);
}

// --- Up the tree

void Reductions::defer_in_tree(ScopeId id, const Scope& scope, Progress& progress) {
  Partial& mine = progress.merged;
  if (mine.value.size() < kLeastTreeBytes || scope.route == Route::kTree || scope.single ||
      progress.has_foreign_value || progress.sequence < scope.first_deferring)
    return;
  const ElementLayout layout = layout_of(mine);
  if (layout.merge == nullptr ||
      !takes_merge(id, progress.sequence, mine.value.size() - layout.first_element))
    return;
  std::uint64_t of_others = 0;
  if (mine.defers_values())
    of_others = sum_of_contributions(read_descriptions(mine.items, messenger_.num_pes()));
  if (of_others >= mine.count) return;  // damaged, which the root finds
  defer_value(id, progress.sequence, mine, layout, mine.count - of_others).is_in_tree = true;
}

bool Reductions::decide_deferred(ScopeId id, const Scope& scope, Progress& progress) {
  Partial& merged = progress.merged;
  const int num_pes = messenger_.num_pes();
  std::vector<DeferredDescription> all = read_descriptions(merged.items, num_pes);
  const std::uint64_t deferred_contributions = sum_of_contributions(all);
  if (deferred_contributions == 0 || deferred_contributions > merged.count) {
    messenger_.fail(
        base::format("PE {} got damaged descriptions of the values of a reduction", messenger_.pe()));
    return false;
  }
  Decision decision{.scope = id, .sequence = progress.sequence, .merges = false, .target = {}};
  // The root's own value is like those of all others.
  if (const std::uint64_t own = merged.count - deferred_contributions;
      own > 0 && merged.has_value && merged.has_target && !progress.has_foreign_value && !scope.single &&
      all.size() == static_cast<std::size_t>(num_pes) - 1 &&
      (is_for_all(merged.target) || merged.target.pe < static_cast<std::uint32_t>(num_pes))) {
    const ElementLayout layout = layout_of(merged);
    if (layout.merge != nullptr &&
        takes_merge(id, progress.sequence, merged.value.size() - layout.first_element)) {
      const DeferredDescription mine = describe(merged.value, layout, own, messenger_.pe());
      decision.merges = std::ranges::all_of(
          all, [&](const DeferredDescription& one) { return one.is_like(mine) && one.pe != mine.pe; });
    }
    if (decision.merges) {
      defer_value(id, progress.sequence, merged, layout, own).is_in_tree = true;
      decision.target = merged.target;
    }
  }
  messenger_.broadcast(Message::pack(messenger_, kReductionDecisionHandler, decision));
  if (decision.merges) return true;
  merged.items.clear();
  merged.combiner_id &= ~kDeferredBit;
  merged.count -= deferred_contributions;
  return false;
}

void Reductions::on_decision(const MessagePtr& message) {
  Pup p = message->unpacker();
  Decision decision;
  p | decision;
  const ScopeId id = decision.scope;
  check_scope(id, messenger_);
  const int pe = messenger_.pe();
  if (message->envelope().root_pe != id.root_pe) refuse_decision(*message, pe, "that it is not the root of");
  Partial named;  // whose target hears of it if the scope is closed
  named.has_target = decision.merges;
  named.target = decision.target;
  Scope* const scope = open_scope(id, &named);
  if (scope == nullptr) return;
  const auto found = deferred_values_.find(key_of(id, decision.sequence));
  const bool awaits = found != deferred_values_.end() && found->second->is_in_tree &&
                      found->second->way == DeferredValue::Way::kUnknown;
  if (!decision.merges) {
    scope->pause_deferring(decision.sequence);
    if (!awaits) return;
    const std::unique_ptr<DeferredValue> deferred = std::move(found->second);
    deferred_values_.erase(found);
    Partial mine;
    mine.assign({deferred->contributions,
                 deferred->reducer,
                 deferred->combiner_id,
                 true,
                 deferred->memory->value,
                 {},
                 nullptr});
    return send_to_root(id, decision.sequence, mine);
  }
  if (!awaits) refuse_decision(*message, pe, "that it does not have");
  const Target& target = decision.target;
  if (!is_for_all(target) && target.pe >= static_cast<std::uint32_t>(messenger_.num_pes()))
    refuse_decision(*message, pe, "for a PE that does not exist");
  found->second->merged_target = target;
  start_merge(id, decision.sequence, *found->second, is_for_all(target) ? -1 : static_cast<int>(target.pe));
}

void Reductions::finish_merged_tree(DeferredValue& deferred) {
  Partial merged;
  merged.target = *std::move(deferred.merged_target);
  const bool for_all = is_for_all(merged.target);
  if (!for_all && merged.target.pe != static_cast<std::uint32_t>(messenger_.pe())) return;
  std::swap(merged.value, deferred.memory->value);
  try {
    deliver(merged, for_all);
  } catch (...) {
    messenger_.fail_unawaited(std::current_exception(), "the result of a reduction");
  }
  std::swap(merged.value, deferred.memory->value);
}

}  // namespace weft::runtime
