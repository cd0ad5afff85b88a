// Large values of reductions, which PEs keep at first.
//
// A PE whose value is large and can be cut (ElementLayout) defers it: an exchange carries a description instead. So when the
// exchange is over, all PEs know the same of all values, and take the same way:
//
// - If each PE defers a value, all values are alike, and LargeMerges takes them, it merges them.
// - If it does not take them, they are cut: plan_cut() says which elements go where. Parts travel out of band and land in place.
// - If they are not alike, the exchange is repeated with the values themselves. So it is if a PE has no contributor, or if NumPy
//   arrays have different element types.
//
// Up the tree a PE sends a description, too, if LargeMerges takes the value. The root decides when it has all contributions, and tells
// all PEs: LargeMerges merges the values, or those that deferred one send it to the root.
//
// Small values do not take part in any of this.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/runtime/message.h"
#include "weft/runtime/reduction.h"

#include "runtime/collective/cut_plan.h"
#include "runtime/collective/progress.h"

namespace weft::runtime {

// Not measured yet.
inline constexpr std::size_t kLeastCutBytes = std::size_t{256} << 10;

// Up the tree, where descriptions and the decision of the root take longer than an exchange. 2 PEs on 2 cores: 8 KiB took as long
// either way, 16 KiB 0.8 times as long.
inline constexpr std::size_t kLeastTreeBytes = std::size_t{16} << 10;

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
  // Any content and size, in memory for `size_bytes` if there is some.
  std::vector<std::byte> take(std::size_t size_bytes) {
    const auto found =
        std::ranges::find_if(kept_, [size_bytes](const auto& one) { return one.capacity() >= size_bytes; });
    if (found == kept_.end()) return {};
    std::vector<std::byte> taken = std::move(*found);
    kept_.erase(found);
    return taken;
  }
  // The largest ones stay.
  void keep(std::vector<std::byte> storage) {
    if (storage.capacity() < kLargeContributionBytes) return;
    const auto larger = std::ranges::find_if(
        kept_, [&storage](const auto& one) { return one.capacity() > storage.capacity(); });
    kept_.insert(larger, std::move(storage));
    if (kept_.size() > kMostKept) kept_.erase(kept_.begin());
  }

 private:
  static constexpr std::size_t kMostKept = 3;
  std::vector<std::vector<std::byte>> kept_;  // the smallest first
};

// The value of a PE and room for what it merges. Sends and receives in flight hold a share.
struct CutMemory {
  explicit CutMemory(std::shared_ptr<LargeMemory> pool_in) : pool(std::move(pool_in)) {}
  ~CutMemory() {
    pool->keep(std::move(value));
    pool->keep(std::move(arriving));
  }
  CutMemory(const CutMemory&) = delete;
  CutMemory& operator=(const CutMemory&) = delete;

  std::shared_ptr<LargeMemory> pool;
  std::vector<std::byte> value;
  std::vector<std::byte> arriving;
};

// Where the elements of the value are. Its function is null if it cannot be merged in parts.
ElementLayout layout_of(const Partial& whole);

// One reduction on a PE, as long as it is not over.
struct DeferredValue {
  // The memory of this PE's value; null if the PE defers none.
  std::shared_ptr<CutMemory> memory;
  ElementLayout layout;
  Reducer reducer = Reducer::kSum;
  std::uint32_t combiner_id = 0;
  std::uint64_t contributions = 0;
  // REQUIRES: `memory`.
  std::span<std::byte> elements() const { return std::span(memory->value).subspan(layout.first_element); }

  enum class Way : std::uint8_t { kUnknown, kMerge, kCut, kRepeat };
  Way way = Way::kUnknown;
  // The description has gone up the tree, and the root decides. `merged_target`: of the reduction, once it is kMerge.
  bool is_in_tree = false;
  std::optional<Target> merged_target;

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
