#include "runtime/collective/deferred_value.h"

#include <cstring>
#include <string_view>

#include "weft/runtime/registry.h"

namespace weft::runtime {

DeferredDescription describe(std::span<const std::byte> value, const ElementLayout& layout,
                             std::uint64_t contributions, int pe) {
  const std::string_view front(reinterpret_cast<const char*>(value.data()), layout.first_element);
  return {contributions,
          value.size(),
          fingerprint(front),
          static_cast<std::uint32_t>(layout.element_bytes),
          static_cast<std::uint32_t>(layout.first_element),
          static_cast<std::uint32_t>(pe),
          0};
}

ElementLayout layout_of(const Partial& whole) {
  const Combiner* const combiner = Registry<Combiner>::find(whole.combiner_id & ~kDeferredBit);
  if (combiner == nullptr || combiner->layout == nullptr || !whole.has_value) return {};
  const ElementLayout layout = combiner->layout(whole.reducer, whole.value);
  const bool is_whole =
      layout.merge == nullptr || (whole.value.size() - layout.first_element) % layout.element_bytes == 0;
  return is_whole ? layout : ElementLayout{};
}

std::vector<DeferredDescription> read_descriptions(std::span<const std::byte> items, int num_pes) {
  std::vector<DeferredDescription> found(items.size() / sizeof(DeferredDescription));
  if (items.size() % sizeof(DeferredDescription) != 0 || found.size() > static_cast<std::size_t>(num_pes))
    return {};
  std::memcpy(found.data(), items.data(), items.size());
  std::vector<bool> known(static_cast<std::size_t>(num_pes));
  for (const DeferredDescription& one : found) {
    if (one.pe >= known.size() || known[one.pe]) return {};
    known[one.pe] = true;
  }
  return found;
}

}  // namespace weft::runtime
