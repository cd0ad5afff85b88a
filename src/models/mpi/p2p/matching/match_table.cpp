#include "models/mpi/p2p/matching/match_table.h"

#include <algorithm>
#include <utility>

namespace weft::mpi {

namespace {

// The key with the wildcards of `kind`: bit 0 for the source, bit 1 for the tag.
MatchKey with_wildcards(MatchKey key, std::size_t kind) {
  if ((kind & 1U) != 0) key.source = kAny;
  if ((kind & 2U) != 0) key.tag = kAny;
  return key;
}

}  // namespace

// --- MatchTable

void MatchTable::push(const MatchKey& key, MatchLink& link) {
  std::size_t at = slot_of(key);
  if (!slots_[at].used) {
    if (2 * (num_used_ + 1) > slots_.size()) [[unlikely]] {
      rebuild();
      at = slot_of(key);
    }
    slots_[at].used = true;
    slots_[at].key = key;
    ++num_used_;
  }
  MatchSlot& slot = slots_[at];
  link.next = nullptr;
  link.previous = slot.last;
  (slot.last == nullptr ? slot.first : slot.last->next) = &link;
  slot.last = &link;
}

void MatchTable::remove(const MatchKey& key, MatchLink& link) {
  MatchSlot& slot = slots_[slot_of(key)];
  (link.previous == nullptr ? slot.first : link.previous->next) = link.next;
  (link.next == nullptr ? slot.last : link.next->previous) = link.previous;
}

void* MatchTable::any() const {
  const auto filled =
      std::find_if(slots_.begin(), slots_.end(), [](const MatchSlot& slot) { return slot.first != nullptr; });
  return filled == slots_.end() ? nullptr : filled->first->entry;
}

// Forgets empty queues, and grows if the others fill more than a quarter.
void MatchTable::rebuild() {
  std::vector<MatchSlot> old = std::exchange(slots_, {});
  std::size_t num_filled = 0;
  for (const MatchSlot& slot : old) num_filled += slot.first != nullptr ? 1U : 0U;
  std::size_t size = kFewestSlots;
  while (size < 4 * (num_filled + 1)) size *= 2;
  slots_.resize(size);
  last_ = {};
  num_used_ = num_filled;
  for (const MatchSlot& slot : old) {
    if (slot.first != nullptr) slots_[slot_of(slot.key)] = slot;
  }
}

// --- PostedQueue

void PostedQueue::post_further(PostedEntry& entry) {
  if (lone_ != nullptr) insert(*std::exchange(lone_, nullptr));
  insert(entry);
}

void PostedQueue::insert(PostedEntry& entry) {
  entry.link.entry = &entry;
  table_.push(entry.key, entry.link);
  ++count_[MatchTable::kind_of(entry.key)];
}

PostedEntry* PostedQueue::find_in_table(const MatchKey& key) const {
  PostedEntry* earliest = nullptr;
  for (std::size_t kind = 0; kind < count_.size(); ++kind) {
    if (count_[kind] == 0) continue;
    const MatchLink* const link = table_.first(with_wildcards(key, kind));
    if (link == nullptr) continue;
    auto* const entry = static_cast<PostedEntry*>(link->entry);
    if (earliest == nullptr || entry->number < earliest->number) earliest = entry;
  }
  return earliest;
}

void PostedQueue::remove_from_table(PostedEntry& entry) {
  table_.remove(entry.key, entry.link);
  --count_[MatchTable::kind_of(entry.key)];
}

// --- UnexpectedQueue

void UnexpectedQueue::add(ArrivedEntry& entry) {
  for (std::size_t kind = 0; kind < entry.links.size(); ++kind) {
    entry.links[kind].entry = &entry;
    table_.push(with_wildcards(entry.key, kind), entry.links[kind]);
  }
  ++size_;
}

void UnexpectedQueue::remove(ArrivedEntry& entry) {
  for (std::size_t kind = 0; kind < entry.links.size(); ++kind) {
    table_.remove(with_wildcards(entry.key, kind), entry.links[kind]);
  }
  --size_;
}

}  // namespace weft::mpi
