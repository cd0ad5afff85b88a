#include "machine/peer_memory/ucx_mappings.h"

#include <iterator>

namespace weft::machine {

bool UcxMappings::admit(const memory::Allocation& allocation) {
  if (allocation.generation == 0) return true;
  // The first one that ends behind the base.
  auto first = mapped_.upper_bound(allocation.base);
  if (first != mapped_.begin() && std::prev(first)->second.contains(allocation.base)) --first;
  const bool is_known = first != mapped_.end() && first->second.contains(allocation.base);
  if (is_known && first->second.generation == allocation.generation) return true;
  // The one at the base is replaced, and no other one may be in the way.
  const auto next = is_known ? std::next(first) : first;
  if (next != mapped_.end() && allocation.contains(next->first)) return false;
  if (is_known) mapped_.erase(first);
  if (mapped_.size() >= kMost) mapped_.clear();
  mapped_.emplace(allocation.base, allocation);
  return true;
}

}  // namespace weft::machine
