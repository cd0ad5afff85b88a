// One reduction on a PE, and those of a scope by number.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "weft/runtime/message.h"

#include "runtime/collective/partial.h"

namespace weft::runtime {

struct Progress {
  std::uint64_t sequence = 0;
  Partial merged;
  std::uint64_t local_contributions = 0;
  int children_done = 0;
  bool has_foreign_value = false;  // of other PEs, in `merged`

  // By recursive doubling: the step, -1 before the PE has all contributions of its own; what has arrived, by step.
  bool exchanges = false;
  bool sent = false;
  int step = -1;
  std::vector<MessagePtr> arrived;
  std::vector<std::byte> scratch;
  Partial late;  // on the root: what came when the exchange had begun

  bool is_abandoned() const { return merged.is_abandoned || late.is_abandoned; }
  void clear() {
    merged.clear();
    local_contributions = 0;
    children_done = 0;
    has_foreign_value = false;
    exchanges = false;
    sent = false;
    step = -1;
    arrived.clear();
    late.clear();
  }
};

// As a rule one or two reductions of a scope are in progress, because a peer may be one ahead. These have a place in the
// table, whose storage serves one after the other. Further ones are in a map.
class ProgressTable {
 public:
  Progress* find(std::uint64_t sequence) {
    for (ProgressSlot& slot : slots_) {
      if (slot.used && slot.progress.sequence == sequence) return &slot.progress;
    }
    if (others_.empty()) return nullptr;
    auto found = others_.find(sequence);
    return found == others_.end() ? nullptr : &found->second;
  }
  Progress& at(std::uint64_t sequence) {
    Progress* const found = find(sequence);
    return found != nullptr ? *found : make(sequence);
  }
  void forget(Progress& progress) {
    for (ProgressSlot& slot : slots_) {
      if (&slot.progress != &progress) continue;
      slot.used = false;
      progress.clear();
      return;
    }
    others_.erase(progress.sequence);
  }
  // In no order.
  std::vector<std::uint64_t> sequences() const {
    std::vector<std::uint64_t> all;
    for (const ProgressSlot& slot : slots_) {
      if (slot.used) all.push_back(slot.progress.sequence);
    }
    for (const auto& [sequence, progress] : others_) all.push_back(sequence);
    return all;
  }

 private:
  struct ProgressSlot {
    bool used = false;
    Progress progress;
  };

  Progress& make(std::uint64_t sequence) {
    for (ProgressSlot& slot : slots_) {
      if (slot.used) continue;
      slot.used = true;
      slot.progress.sequence = sequence;
      return slot.progress;
    }
    Progress& made = others_[sequence];
    made.sequence = sequence;
    return made;
  }

  std::array<ProgressSlot, 2> slots_;
  std::map<std::uint64_t, Progress> others_;
};

}  // namespace weft::runtime
