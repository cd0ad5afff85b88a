// Reductions, for any model.
//
// A scope is a set of contributors (a collection, or one awaited broadcast), known by its root PE and an id.
// In a scope reductions are numbered; every contributor takes part in each, in order. A PE merges what its
// contributors give. What happens then depends on the reduction:
//
// - Up the spanning tree, if the result has one target. A PE merges what its children give as well, and passes one
//   partial result to its parent when all of them have; what comes later is passed on alone.
// - By recursive doubling (exchange_plan.h), if all PEs get the result and open() allows it. Every PE ends with
//   the same partial result: two parts are merged in the order of their PEs. If it has all contributions, each PE
//   delivers it to itself. Otherwise the root merges those that come later, as in the tree, and broadcasts. A PE that
//   all contributors have left takes part when it gets a part, and learns the target from it.
//
// - Large values are deferred: a PE keeps its value and passes a description on. When all values are known to be alike, they are merged in
//   parts, otherwise they are sent (deferred_value.h).
//
// Only the number of contributions decides that a reduction is complete: as many as the scope has contributors have
// been merged. So the way is an optimisation and never a condition, also when contributors move.
//
// A PE whose subtree has no contributor says so once, so that its parent does not wait for it.
//
// Nothing is allocated for a contribution, nor for a reduction whose value is as large as an earlier one's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/reduction.h"

#include "runtime/collective/progress.h"
#include "runtime/collective/scope_id.h"
#include "runtime/message/handlers.h"

namespace weft::runtime {

struct CutStep;
class LargeMemory;
class LargeMerges;
struct DeferredValue;

// Scope ids below this belong to the runtime itself; its messages are not counted by quiescence detection.
inline constexpr std::uint64_t kFirstModelScope = 16;

// How results for all PEs may come: up and down the tree, or by recursive doubling.
enum class Route : std::uint8_t {
  kTree,
  kFullTree,  // the same, for any target large values may be deferred. REQUIRES: as a rule all PEs have contributors
  kExchange,        // REQUIRES: no PE is ever without contributors
  kMovingExchange,  // parts carry the target. REQUIRES: ExchangePlan::reaches_all(); no PE begins without one
};

class Reductions {
 public:
  explicit Reductions(Messenger& messenger);
  ~Reductions();
  Reductions(const Reductions&) = delete;
  Reductions& operator=(const Reductions&) = delete;

  // Says how many contributors the scope has in all and on this PE. A `single` scope serves one reduction,
  // number 0, and is forgotten after it. `route` is the same on all PEs.
  void open(ScopeId scope, std::uint64_t total, std::uint64_t local_contributors, bool single,
            Route route = Route::kTree);

  // The scope has no contributors any more. What is known of its reductions is freed; futures that are their targets get
  // Error(kClosed) with `why`.
  void close(ScopeId scope, const std::string& why);
  // Fails with the reason if a scope that this PE does not know is closed, and not only not opened yet. For messages that come late.
  using ClosedFunction = base::Status (*)(void* context, ScopeId scope);
  void set_closed_function(ClosedFunction function, void* context);
  // Names the contributors of a scope in messages, such as "Ring"; empty if the function does not know them.
  using NameFunction = std::string (*)(void* context, ScopeId scope);
  void set_name_function(NameFunction function, void* context);

  // A reduction has no result, with the reason. Only a future as the target learns of it, once, also when several PEs tell it.
  void give_up(const Target& target, const std::string& why);
  // As give_up(), for all reductions that are not complete: a PE is lost.
  void give_up_all(const std::exception_ptr& error);

  // One contribution. `index` orders kGather and kConcat. All contributors of a reduction must name the same
  // reducer and target. REQUIRES: open() was called; `combiner` is null for kGather and kConcat only.
  void contribute(ScopeId scope, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                  const Combiner* combiner, std::span<const std::byte> value, const Target& target);
  // As contribute(), but the value is not copied if it is the first of this PE.
  void contribute_large(ScopeId scope, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                        const Combiner* combiner, std::vector<std::byte>&& value, const Target& target);
  // Adds a contribution to a partial result of this PE's: as a value, or as an item if reductions are ordered. `value`: a span, or a vector
  // that it is moved from.
  template <class Value>
  void add_to(Partial& into, std::uint64_t index, Reducer reducer, const Combiner* combiner, Value&& value,
              const Target& target) {
    // Contributions without a value have no order.
    if (is_ordered_ && combiner != nullptr && !value.empty()) [[unlikely]]
      return into.add_item(messenger_, index, reducer, combiner, value, target);
    into.add_contribution(messenger_, index, reducer, combiner, std::forward<Value>(value), target);
  }
  // Values are merged in the order of the contributors' indexes, and not where they come together. The results of floating-point numbers
  // have the same bits on any number of PEs, and all contributions travel to where the result is. REQUIRES: the same on all PEs, before
  // the first contribution.
  void set_ordered(bool is_ordered) { is_ordered_ = is_ordered; }
  bool is_ordered() const { return is_ordered_; }
  // Memory for such a value, with any content.
  std::vector<std::byte> large_memory(std::size_t size_bytes);

  // A contributor has moved from this PE, or to it. It contributes on its new PE from reduction `first` on; `first_here`
  // was `first` when it came to this PE, 0 if it was here from the start. Nothing is lost otherwise: what it has
  // contributed on its old PE counts there.
  void contributor_left(ScopeId scope, std::uint64_t first_here);
  void contributor_arrived(ScopeId scope, std::uint64_t first);
  // As contribute(), for a contributor that has moved to this PE after it has given its part of the scope. The
  // contribution goes to the root.
  void contribute_directly(ScopeId scope, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                           const Combiner* combiner, std::span<const std::byte> value, const Target& target);

  // A result for this PE whose target is `handler` goes to `function` at once, without a message: the target's prefix
  // and the packed result. An exception of it ends the job.
  using ResultFunction = void (*)(void* context, std::span<const std::byte> prefix,
                                  std::span<const std::byte> result);
  void set_result_function(HandlerId handler, ResultFunction function, void* context);

  // `merges` merges large values that are alike; null for none. It lives until another one is set, the same on all PEs.
  void set_large_merges(LargeMerges* merges);
  LargeMerges* large_merges() const { return large_merges_; }
  // Names the contributors whose values a combiner merges now, as the name function does. REQUIRES: called by a combiner, or where one
  // has just thrown.
  std::string merged_contributors() const;
  // For reductions that are counted elsewhere: the values of that scope are merged next.
  void note_merge(ScopeId scope) {
    latest_ = nullptr;
    latest_id_ = scope;
  }
  // Reductions whose values this PE keeps, or of which others have sent parts.
  std::size_t num_deferred() const { return deferred_values_.size(); }
  // For LargeMerges: the merge is over on this PE. `error`: null if the result is there.
  void end_merge(ScopeId scope, std::uint64_t sequence, const std::exception_ptr& error);

 private:
  struct Scope {
    bool is_open = false;
    bool single = false;
    bool empty_reported = false;
    Route route = Route::kTree;
    std::uint64_t total = 0;
    std::uint64_t local_contributors = 0;
    int empty_children = 0;
    std::uint64_t first_unflushed = 0;
    std::uint64_t first_deferring = 0;  // values of earlier reductions are not deferred
    ProgressTable progress;
    // How many contributors have moved here, by their first reduction here, as long as earlier ones are not over. There
    // are few such numbers, and may be many contributors.
    std::map<std::uint64_t, std::uint64_t> arrivals;

    // How many contributors of this PE the reduction waits for. Fewer contribute if some have moved here since.
    std::uint64_t expected(std::uint64_t sequence) const {
      if (arrivals.empty()) [[likely]]
        return local_contributors;
      return local_contributors - num_later(sequence);
    }
    // The contributors that have moved here and begin behind that reduction.
    std::uint64_t num_later(std::uint64_t sequence) const;
    // Before open(), as for contributions of constructors, it may turn out otherwise.
    bool exchanges(const Target& target) const {
      return (!has_tree_only() || !is_open) && (target.flags & kBroadcastFlag) != 0;
    }
    // The deferred values of that reduction could not be merged in parts. So it may be with the next ones: a PE may have no contributor
    // any more.
    void pause_deferring(std::uint64_t sequence) {
      constexpr std::uint64_t kPause = 64;
      first_deferring = std::max(first_deferring, sequence + kPause);
    }
    bool has_tree_only() const { return route == Route::kTree || route == Route::kFullTree; }
    // All reductions below that number are over on this PE.
    void forget_arrivals(std::uint64_t below) {
      if (!arrivals.empty()) [[unlikely]]
        arrivals.erase(arrivals.begin(), arrivals.upper_bound(below));
    }
  };

  void give_up(const Target& target, const std::exception_ptr& error);
  Scope& scope_at(ScopeId id) {
    return latest_ != nullptr && latest_id_ == id ? *latest_ : find_or_make_scope(id);
  }
  Scope& find_or_make_scope(ScopeId id);
  Scope* find_scope(ScopeId id);
  void forget_scope(ScopeId id);
  // For a message: the scope, null if it is closed. Then futures that are targets of `partial` have got an error.
  Scope* open_scope(ScopeId id, const Partial* partial);

  // `value`: a span, or a vector that it is moved from.
  template <class Value>
  void contribute_value(ScopeId scope, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                        const Combiner* combiner, Value&& value, const Target& target);
  void on_partial(MessagePtr message);
  void on_empty(MessagePtr message);
  void advance(ScopeId id, std::uint64_t sequence);
  void advance_from(ScopeId id, Scope& scope, Progress& progress);
  [[gnu::cold, gnu::noinline]] void observe_begin(ScopeId id, std::uint64_t sequence) const;
  void forget(ScopeId id, Scope& scope, Progress& progress) const;
  // Returns whether the next reduction may advance now. The reduction may have been forgotten, and the scope too if it
  // returns false.
  bool advance_one(ScopeId id, Scope& scope, Progress& progress);
  void advance_all(ScopeId id);
  void advance_empty_report(ScopeId id, Scope& scope);
  // Whether the reduction is the next that this PE passes on. Earlier ones to which this PE and those below it have nothing
  // to give are skipped.
  bool is_next(ScopeId id, Scope& scope, std::uint64_t sequence);
  void send_up(ScopeId id, std::uint64_t sequence, bool done, const Partial& partial);
  void send_to_root(ScopeId id, std::uint64_t sequence, const Partial& partial);
  void deliver(Partial& partial, bool to_this_pe);

  // --- Recursive doubling, in exchange.cpp

  void on_exchange(MessagePtr message);
  // As advance_one().
  bool advance_exchange(ScopeId id, Scope& scope, Progress& progress);
  // `kHandler`: of the messages.
  template <HandlerId kHandler>
  bool run_steps(ScopeId id, const Scope& scope, Progress& progress);
  template <HandlerId kHandler>
  void send_step(ScopeId id, const Scope& scope, const Progress& progress, int peer);
  void merge_step(Progress& progress, int peer, bool replaces);
  void finish_exchange(ScopeId id, Scope& scope, Progress& progress);

  // --- Large values, in large_values.cpp

  using DeferredValueKey =
      std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  // a scope and a reduction
  static DeferredValueKey key_of(ScopeId id, std::uint64_t sequence) { return {id.root_pe, id.id, sequence}; }

  // Keeps the value, of which `mine` has the description then.
  DeferredValue& defer_value(ScopeId id, std::uint64_t sequence, Partial& mine, const ElementLayout& layout,
                             std::uint64_t contributions);
  // Leaves the value out of the exchange that begins, if it can be cut.
  [[gnu::cold, gnu::noinline]] void defer_in_exchange(ScopeId id, const Scope& scope, Progress& progress);
  // The exchange is over, and values have been deferred.
  [[gnu::cold, gnu::noinline]] void use_deferred_values(ScopeId id, Scope& scope, Progress& progress);
  DeferredValue& deferred_value_at(ScopeId id, std::uint64_t sequence);
  // For a message about deferred values: null if the scope is closed. Throws Error(kCorrupt) if no exchange is under way.
  Progress* find_exchange(ScopeId id, std::uint64_t sequence, const Message& message);
  void forget_deferred_values(ScopeId id);

  // --- Large values that LargeMerges merges, and those in the tree, in merged_values.cpp

  bool takes_merge(ScopeId id, std::uint64_t sequence, std::size_t size_bytes) const;
  void start_merge(ScopeId id, std::uint64_t sequence, DeferredValue& deferred, int target_pe);
  // Leaves the value out of what this PE sends up the tree, if it can be merged.
  [[gnu::cold, gnu::noinline]] void defer_in_tree(ScopeId id, const Scope& scope, Progress& progress);
  // The root has all contributions, and values have been deferred: tells all PEs what becomes of them. Returns false if the values are
  // to come here.
  [[gnu::cold, gnu::noinline]] bool decide_deferred(ScopeId id, const Scope& scope, Progress& progress);
  void on_decision(const MessagePtr& message);
  void finish_merged_tree(DeferredValue& deferred);

  // --- In large_values.cpp again

  // The exchange is repeated with the values.
  void begin_repeat(ScopeId id, Scope& scope, Progress& progress, DeferredValue& deferred);
  void run_repeat(ScopeId id, Scope& scope, Progress& progress, DeferredValue& deferred);
  void on_repeat(MessagePtr message);  // in exchange.cpp

  // The values are cut.
  void run_cut(ScopeId id, Scope& scope, Progress& progress, DeferredValue& deferred);
  void send_part(ScopeId id, std::uint64_t sequence, const DeferredValue& deferred, const CutStep& step);
  // Gives the part of the step a place if it has been announced.
  void land_part(DeferredValue& deferred, const CutStep& step);
  void finish_cut(ScopeId id, Scope& scope, Progress& progress);
  Posting post_part(MessagePtr& message, std::span<ReceiveBuffer> receive_buffers);
  void on_part(const MessagePtr& message);

  Messenger& messenger_;
  std::unordered_map<ScopeId, Scope, ScopeIdHash> scopes_;
  // Successive contributions are often to one scope.
  ScopeId latest_id_;
  Scope* latest_ = nullptr;
  std::map<DeferredValueKey, std::unique_ptr<DeferredValue>> deferred_values_;
  std::shared_ptr<LargeMemory> large_memory_;
  LargeMerges* large_merges_ = nullptr;
  std::size_t least_deferred_bytes_;  // no smaller value is deferred
  bool is_ordered_ = false;
  HandlerId result_handler_ = kNumHandlers;
  ResultFunction result_function_ = nullptr;
  void* result_context_ = nullptr;
  ClosedFunction closed_function_ = nullptr;
  void* closed_context_ = nullptr;
  NameFunction name_function_ = nullptr;
  void* name_context_ = nullptr;
};

// Throws Error(kCorrupt) if the root PE of the scope, which a peer has named, does not exist.
void check_scope(ScopeId scope, const Messenger& messenger);

}  // namespace weft::runtime
