// Reductions up the spanning tree, for any model.
//
// A scope is a set of contributors (a collection, or one awaited broadcast), known by its root PE and an id.
// In a scope reductions are numbered; every contributor takes part in each, in order. A PE merges what its
// contributors and its children give and passes one partial result to its parent when all of them have; what
// comes later is passed on alone. Only the root decides that a reduction is complete: when as many
// contributions as the scope has contributors have been merged. So the tree is an optimisation and never a
// condition, also when contributors move.
//
// A PE whose subtree has no contributor says so once, so that its parent does not wait for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/reduction.h"

namespace weft::runtime {

struct ScopeId {
  std::uint32_t root_pe = 0;
  std::uint64_t id = 0;

  friend bool operator==(const ScopeId&, const ScopeId&) = default;
};

struct ScopeIdHash {
  std::size_t operator()(const ScopeId& scope) const {
    return std::hash<std::uint64_t>()(scope.id * 0x9e3779b97f4a7c15 + scope.root_pe);
  }
};

// Scope ids below this belong to the runtime itself; its messages are not counted by quiescence detection.
inline constexpr std::uint64_t kFirstModelScope = 16;

class Reductions {
 public:
  explicit Reductions(Messenger& messenger);

  // Says how many contributors the scope has in all and on this PE. A `single` scope serves one reduction,
  // number 0, and is forgotten after it.
  void open(ScopeId scope, std::uint64_t total, std::uint64_t local_contributors, bool single);

  // One contribution. `index` orders kGather and kConcat. All contributors of a reduction must name the same
  // reducer; the target of any of them is used. REQUIRES: open() was called; `combiner` is null for kGather
  // and kConcat only.
  void contribute(ScopeId scope, std::uint64_t sequence, std::uint64_t index, Reducer reducer,
                  const Combiner* combiner, std::span<const std::byte> value, const Target& target);

 private:
  struct Item {
    std::uint64_t index = 0;
    std::vector<std::byte> value;
    void pup(Pup& p) { p | index | value; }
  };

  // What one message to the parent carries, and what a PE has merged so far.
  struct Partial {
    std::uint64_t count = 0;
    Reducer reducer = Reducer::kSum;
    std::uint32_t combiner_id = 0;
    bool has_value = false;
    std::vector<std::byte> value;
    std::vector<Item> items;
    Target target;
    void pup(Pup& p) { p | count | reducer | combiner_id | has_value | value | items | target; }
  };

  struct Progress {
    Partial merged;
    std::uint64_t local_contributions = 0;
    int children_done = 0;
  };

  struct Scope {
    bool is_open = false;
    bool single = false;
    bool silence_reported = false;
    std::uint64_t total = 0;
    std::uint64_t local_contributors = 0;
    int silent_children = 0;
    std::uint64_t first_unflushed = 0;
    std::map<std::uint64_t, Progress> progress;
  };

  void on_partial(MessagePtr message);
  void on_silent(MessagePtr message);
  void merge(ScopeId id, Partial& into, Partial&& from);
  void advance(ScopeId id, std::uint64_t sequence);
  void advance_all(ScopeId id);
  void advance_silence(ScopeId id, Scope& scope);
  void send_up(ScopeId id, std::uint64_t sequence, bool done, const Partial& partial);
  void deliver(Partial&& partial);

  Messenger& messenger_;
  std::unordered_map<ScopeId, Scope, ScopeIdHash> scopes_;
};

}  // namespace weft::runtime
