#include "models/mpi/p2p/matching/match_table.h"

#include <algorithm>
#include <utility>

namespace weft::mpi {

MatchTable::MatchSlot& MatchTable::make_queue(const MatchKey& key, std::size_t kind) {
  if (2 * (num_used_ + 1) > slots_.size()) rebuild();
  MatchSlot& made = slots_[slot_of(key, kind)];
  made.used = true;
  made.kind = static_cast<std::uint8_t>(kind);
  made.key = key;
  ++num_used_;
  return made;
}

void* MatchTable::any() const {
  const auto filled =
      std::find_if(slots_.begin(), slots_.end(), [](const MatchSlot& slot) { return slot.first != nullptr; });
  return filled == slots_.end() ? nullptr : filled->first->entry;
}

// Forgets empty queues, and grows if the others fill more than a quarter.
void MatchTable::rebuild() {
  std::size_t num_filled = 0;
  for (const MatchSlot& slot : slots_) num_filled += slot.first != nullptr ? 1U : 0U;
  std::size_t size = kFewestSlots;
  while (size < 4 * (num_filled + 1)) size *= 2;
  std::vector<MatchSlot> old(size);  // nothing has changed if there is no memory
  old.swap(slots_);
  last_ = {};
  num_used_ = num_filled;
  for (const MatchSlot& slot : old) {
    if (slot.first != nullptr) slots_[slot_of(slot.key, slot.kind)] = slot;
  }
}

void UnexpectedQueue::begin_kind(std::size_t kind) {
  ArrivedEntry* entry = oldest_;
  try {
    for (; entry != nullptr; entry = entry->newer) insert(*entry, kind);
  } catch (...) {  // there is no memory, and the kind has not begun
    for (ArrivedEntry* undone = oldest_; undone != entry; undone = undone->newer) withdraw(*undone, kind);
    throw;
  }
  kinds_ |= 1U << kind;
}

}  // namespace weft::mpi
