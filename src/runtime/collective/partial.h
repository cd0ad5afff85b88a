// The merged contributions of one reduction: those of a PE so far, or those in one message.
//
// Contributions to kGather and kConcat are not merged but listed as items: index, size, bytes, one behind the other in
// one block, so that a contribution needs no allocation of its own. If reductions are ordered, so are all others with a value: result()
// merges the items in the order of their indexes, so the result does not depend on where the contributors are.
//
// A PE may defer a large value (deferred_value.h): its part has a description of the value as its only item, and kDeferredBit in
// `combiner_id`. Parts that defer a value are merged with one another and with others: `count` counts all contributions, `value` is
// merged of those that are not deferred, if there are any, and `items` lists the descriptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/runtime/reduction.h"

namespace weft::runtime {

class Messenger;

// Whether all PEs get the result.
inline bool is_for_all(const Target& target) { return (target.flags & kBroadcastFlag) != 0; }

// A contribution, or several merged ones, in memory that belongs to another object.
struct PartialView {
  std::uint64_t count = 0;
  Reducer reducer = Reducer::kSum;
  std::uint32_t combiner_id = 0;
  bool has_value = false;
  std::span<const std::byte> value;
  std::span<const std::byte> items;
  const Target* target = nullptr;  // null if the message that it came in names none
};

inline constexpr std::uint32_t kNoCombiner = ~std::uint32_t{0};
// In the number of a combiner, but not in kNoCombiner: some contributions are deferred.
inline constexpr std::uint32_t kDeferredBit = std::uint32_t{1} << 31;

struct Partial {
  std::uint64_t count = 0;
  Reducer reducer = Reducer::kSum;
  std::uint32_t combiner_id = 0;
  bool has_value = false;
  bool has_target = false;
  bool is_abandoned = false;  // a value was not merged and the job ends: it is not sent on, and is no result
  std::vector<std::byte> value;
  std::vector<std::byte> items;
  Target target;

  // Packs the contents of a message to the parent.
  void pup(Pup& p) { p | count | reducer | combiner_id | has_value | has_target | value | items | target; }
  PartialView view() const {
    return {count, reducer, combiner_id, has_value, value, items, has_target ? &target : nullptr};
  }
  bool defers_values() const { return static_cast<std::int32_t>(combiner_id) < -1; }
  // Makes it empty. The storage stays for the next reduction.
  void clear();
  // Takes what `from` has, but keeps its own target if `from` names none.
  void assign(const PartialView& from);
  // Adds the only value or the only item of one contributor. `combiner` is null for kGather and kConcat.
  void add_contribution(Messenger& messenger, std::uint64_t index, Reducer reducer, const Combiner* combiner,
                        std::span<const std::byte> contribution, const Target& target);
  // Adds one as an item, to be merged in order; `combiner` is null for kGather and kConcat.
  void add_item(Messenger& messenger, std::uint64_t index, Reducer reducer, const Combiner* combiner,
                std::span<const std::byte> contribution, const Target& target);
  // Adds a contribution, and takes its value without a copy if it is the first. `contribution` has other memory then.
  void add_contribution(Messenger& messenger, std::uint64_t index, Reducer reducer, const Combiner* combiner,
                        std::vector<std::byte>&& contribution, const Target& target);
  // Merges `from` behind what it has. Fails the job if the two do not belong to the same reduction.
  void add(Messenger& messenger, const PartialView& from);
  // As add(), but the value of `from` is the first operand. `scratch` keeps its storage for the next call.
  void add_in_front(Messenger& messenger, const PartialView& from, std::vector<std::byte>& scratch);
  // The packed result, in memory of this object. Throws Error for items that are damaged. If a reducer fails, the job ends and this is
  // abandoned. REQUIRES: complete.
  std::span<const std::byte> result(Messenger& messenger);

 private:
  // Whether one may be merged with this. If not, the job fails.
  bool expect_like(Messenger& messenger, Reducer reducer, std::uint32_t combiner, const Target* target);
  // Adds all but the value. Returns the combiner for that, null if there is nothing to merge.
  const Combiner* add_all_but_value(Messenger& messenger, const PartialView& from);
  // The combiner of parts that defer a value. Returns null if this has no value yet; then it takes `from`'s.
  const Combiner* find_deferred_combiner(Messenger& messenger, const PartialView& from);
  // All contributions so far are deferred.
  void take_first_value(std::span<const std::byte> first);
  void merge(Messenger& messenger, const Combiner& combiner, std::span<const std::byte> more);
  std::vector<std::byte> join_items() const;
  void merge_items(Messenger& messenger);
};

// The job ends: contributors to one reduction do not name the same targets.
void fail_different_targets(Messenger& messenger);

}  // namespace weft::runtime
