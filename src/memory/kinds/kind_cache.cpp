#include "memory/kinds/kind_cache.h"

#include <cassert>
#include <iterator>

namespace weft::memory {

namespace {
// The entry of memory that another library freed stays until its address is asked for again. This bounds
// them.
constexpr std::size_t kMaxEntries = 4096;
}  // namespace

void KindCache::add(KindBackend* kind) {
  assert(num_kinds_ < kNumKinds);
  kinds_[static_cast<std::size_t>(num_kinds_++)] = kind;
  if (kind->is_in_own_mappings() && !has_kind_in_own_mappings_) {
    host_ranges_ = HostRanges::of_process();
    has_kind_in_own_mappings_ = true;
  }
  kind->set_release_listener([this](std::uintptr_t base) {
    entries_.erase(base);
    if (listener_) listener_(base);
  });
}

Allocation KindCache::find_of_buffer(const void* address) {
  const std::uint64_t generation = host_pages_.generation();
  bool is_known_host = false;
  const Allocation found = look_up(address, &is_known_host);
  if (has_kind_in_own_mappings_ && found.place.is_host() && !is_known_host) {
    host_pages_.remember(reinterpret_cast<std::uintptr_t>(address), generation);
  }
  return found;
}

Allocation KindCache::look_up(const void* address, bool* is_known_host) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const auto next = entries_.upper_bound(number);
  if (next != entries_.begin()) {
    const auto entry = std::prev(next);
    if (entry->second.allocation.contains(number)) {
      if (entry->second.kind->is_current(entry->second.allocation, address)) return entry->second.allocation;
      entries_.erase(entry);
    }
  }
  for (int i = 0; i < num_kinds_; ++i) {
    KindBackend* const kind = kinds_[static_cast<std::size_t>(i)];
    if (!may_have(*kind, number)) continue;
    const std::optional<Allocation> found = kind->find_allocation(address);
    if (!found.has_value()) continue;
    if (found->place.is_host()) {
      if (is_known_host != nullptr) *is_known_host = true;
      continue;
    }
    if (remember(*found, kind)) kind->first_seen(*found);
    return *found;
  }
  return {};
}

bool KindCache::remember(const Allocation& allocation, KindBackend* kind) {
  if (allocation.generation == 0 || allocation.size_bytes == 0 || allocation.place.is_host()) return false;
  if (entries_.size() >= kMaxEntries) entries_.clear();
  auto overlapping = entries_.lower_bound(allocation.base);
  if (overlapping != entries_.begin()) {
    const auto before = std::prev(overlapping);
    if (before->second.allocation.contains(allocation.base)) overlapping = before;
  }
  while (overlapping != entries_.end() && overlapping->first < allocation.base + allocation.size_bytes) {
    overlapping = entries_.erase(overlapping);
  }
  entries_.emplace(allocation.base, CachedAllocation{allocation, kind});
  return true;
}

}  // namespace weft::memory
