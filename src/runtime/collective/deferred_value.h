// Large values of reductions for all PEs, which an exchange leaves out at first.
//
// A PE whose value is large and can be cut (ElementLayout) defers it: the exchange carries a description instead. So when the
// exchange is over, all PEs know the same of all values, and take the same of two ways:
//
// - If each PE defers a value and all values are alike, they are cut: plan_cut() says which elements go where. Parts travel
//   out of band and land in place.
// - Otherwise the exchange is repeated with the values themselves. So it is if a PE has no contributor, or if NumPy arrays have
//   different element types.
//
// Small values do not take part in any of this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/reduction.h"

#include "runtime/collective/cut_plan.h"
#include "runtime/collective/progress.h"

namespace weft::runtime {

// Not measured yet.
inline constexpr std::size_t kLeastCutBytes = kLargeContributionBytes;

// The wire format.
struct DeferredDescription {
  std::uint64_t contributions = 0;
  std::uint64_t value_bytes = 0;
  std::uint64_t front_hash = 0;  // of what precedes the elements
  std::uint32_t element_bytes = 0;
  std::uint32_t first_element = 0;
  std::uint32_t pe = 0;
  std::uint32_t reserved = 0;

  // Whether the two values can be merged element by element.
  bool is_like(const DeferredDescription& other) const {
    return value_bytes == other.value_bytes && front_hash == other.front_hash &&
           element_bytes == other.element_bytes && first_element == other.first_element;
  }
};
static_assert(sizeof(DeferredDescription) == 40);

// REQUIRES: the layout is that of the value.
DeferredDescription describe(std::span<const std::byte> value, const ElementLayout& layout,
                             std::uint64_t contributions, int pe);
// Empty if the bytes are none, or if two of them are of one PE.
std::vector<DeferredDescription> read_descriptions(std::span<const std::byte> items, int num_pes);

// Memory for large values, kept for the next ones: fresh memory costs as much as a copy.
class LargeMemory {
 public:
  // Any content and size.
  std::vector<std::byte> take() {
    if (kept_.empty()) return {};
    std::vector<std::byte> found = std::move(kept_.back());
    kept_.pop_back();
    return found;
  }
  void keep(std::vector<std::byte> storage) {
    if (kept_.size() < kMostKept && storage.capacity() > 0) kept_.push_back(std::move(storage));
  }

 private:
  static constexpr std::size_t kMostKept = 3;
  std::vector<std::vector<std::byte>> kept_;
};

struct CutMemory;

// One reduction on a PE, as long as it is not over.
struct DeferredValue {
  // The memory of this PE's value; null if the PE defers none.
  std::shared_ptr<CutMemory> memory;
  ElementLayout layout;
  std::uint64_t contributions = 0;

  enum class Way : std::uint8_t { kUnknown, kCut, kRepeat };
  Way way = Way::kUnknown;

  // Cut: the step, whether its part has been sent, and whether what comes has a place or is there.
  std::vector<CutStep> steps;
  std::size_t step = 0;
  bool has_sent = false;
  bool is_landing = false;
  bool has_landed = false;
  std::vector<MessagePtr> ahead;  // their parts are at the senders

  // Repeated.
  Progress again;
};

}  // namespace weft::runtime
