// LargeMerges, the merge of one large value of each PE, which a model carries out for Reductions: the collective engine is above this layer.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weft/runtime/reduction.h"

#include "runtime/collective/scope_id.h"

namespace weft::runtime {

struct LargeMerge {
  // Together they name the merge, the same on all PEs.
  ScopeId scope;
  std::uint64_t sequence = 0;
  Reducer reducer = Reducer::kSum;
  ElementLayout layout;           // its function runs no code of the program and does not throw
  std::span<std::byte> elements;  // as many on all PEs
  int target_pe = -1;             // the one that gets the result; negative: all get it
  // What keeps the elements in place. A share of it is held until the merge is over on this PE.
  std::shared_ptr<void> memory;
};

class LargeMerges {
 public:
  virtual ~LargeMerges() = default;

  // From so many bytes of elements on some merges are taken. The largest number if none is.
  virtual std::size_t least_bytes() const = 0;
  // Whether start() may be called. The same on all PEs.
  virtual bool takes(ScopeId scope, std::uint64_t sequence, std::size_t size_bytes) const = 0;
  // This PE takes part. Later, in a turn of its own, Reductions::end_merge() is called once: the elements are the result on PEs that get
  // it, and of no use on the others. All PEs get the same bits. REQUIRES: takes(); all PEs take part, or close the scope.
  virtual void start(const LargeMerge& merge) = 0;
  // The scope is closed. Merges that are under way end without a call, and this PE takes part in no more of them. Other PEs wait for it
  // until they close the scope, too. `others_may_send`: this PE has a value that may be merged, so others may have begun.
  virtual void close(ScopeId scope, bool others_may_send) = 0;
};

}  // namespace weft::runtime
