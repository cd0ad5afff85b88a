// EngineMerges, large values of reductions of chares through the engine of collectives.
//
// A collection has a group of all PEs, whose number is exactly its scope. The number of a call is exactly that of the reduction and of the
// piece of the value: a value of more than kMostPieceBytes goes in pieces. Few pieces of a value, and few values of a collection, are under
// way at once, so that a board has room. A value waits for earlier ones alone: their order is the same on all PEs.
//
// Threads: the PE's. A piece ends while a message arrives; what follows for the reduction has a turn of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "weft/runtime/runtime.h"

#include "collective/form.h"
#include "collective/group.h"
#include "runtime/collective/large_merges.h"
#include "runtime/collective/reductions.h"

namespace weft::chare {

class EngineMerges final : public runtime::LargeMerges {
 public:
  // REQUIRES: the runtime has the engine of collectives, which outlives this.
  explicit EngineMerges(runtime::Runtime& runtime);
  ~EngineMerges() override;

  std::size_t least_bytes() const override;
  bool takes(runtime::ScopeId scope, std::uint64_t sequence, std::size_t size_bytes) const override;
  void start(const runtime::LargeMerge& merge) override;
  void close(runtime::ScopeId scope, bool others_may_send) override;

  std::size_t num_under_way() const { return under_way_.size(); }

 private:
  class MergeInPieces;

  collective::Group& group_of(runtime::ScopeId scope);
  // Begins the merges that need not wait for earlier ones.
  void begin_ready(runtime::ScopeId scope);
  // Frees it.
  void forget(const MergeInPieces& merge);

  runtime::Runtime& runtime_;
  const collective::DirectSizes sizes_;
  std::unordered_map<runtime::ScopeId, std::shared_ptr<collective::Group>, runtime::ScopeIdHash> groups_;
  std::vector<std::unique_ptr<MergeInPieces>> under_way_;
};

}  // namespace weft::chare
