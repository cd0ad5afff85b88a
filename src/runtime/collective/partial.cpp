#include "runtime/collective/partial.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/message.h"
#include "weft/runtime/messenger.h"

#include "base/format.h"
#include "base/refuse_claim.h"
#include "runtime/collective/reducer_failure.h"

namespace weft::runtime {

namespace {

struct Item {
  std::uint64_t index = 0;
  std::span<const std::byte> value;
};

// By index.
std::vector<Item> sorted_items(std::span<const std::byte> bytes, std::size_t expected) {
  std::vector<Item> items;
  items.reserve(std::min(expected, bytes.size() / (2 * sizeof(std::uint64_t)) + 1));
  Pup p = Pup::unpacker(bytes.data(), bytes.size());
  while (p.remaining_bytes() > 0) {
    Item item;
    std::uint64_t size_bytes = 0;
    p | item.index | size_bytes;
    p.expect(size_bytes);
    item.value = {p.cursor(), size_bytes};
    p.skip(size_bytes);
    items.push_back(item);
  }
  std::ranges::stable_sort(items, {}, &Item::index);
  return items;
}

[[gnu::cold]] void fail_different_reducers(Messenger& messenger) {
  messenger.fail(
      "contributors to one reduction name different reducers or types; each element must call contribute in "
      "the same order with the same reducer");
}

}  // namespace

void fail_different_targets(Messenger& messenger) {
  messenger.fail(base::format(
      "contributors to one reduction name different targets, on PE {}: the result of some is for all "
      "PEs (allreduce, or a target of a whole collection), that of others for one; each element must "
      "make the same calls in the same order",
      messenger.pe()));
}

void Partial::clear() {
  count = 0;
  combiner_id = 0;
  has_value = false;
  has_target = false;
  is_abandoned = false;
  value.clear();
  items.clear();
}

void Partial::assign(const PartialView& from) {
  count = from.count;
  reducer = from.reducer;
  combiner_id = from.combiner_id;
  has_value = from.has_value;
  value.assign(from.value.begin(), from.value.end());
  items.assign(from.items.begin(), from.items.end());
  if (from.target == nullptr) return;
  has_target = true;
  target = *from.target;
}

void Partial::add_contribution(Messenger& messenger, std::uint64_t index, Reducer of,
                               const Combiner* combiner, std::span<const std::byte> contribution,
                               const Target& to) {
  if (combiner == nullptr) return add_item(messenger, index, of, nullptr, contribution, to);
  if (count == 0) return assign({1, of, combiner->id, true, contribution, {}, &to});
  if (!expect_like(messenger, of, combiner->id, &to)) return;
  ++count;
  if (has_value) return merge(messenger, *combiner, contribution);
  take_first_value(contribution);
}

void Partial::add_item(Messenger& messenger, std::uint64_t index, Reducer of, const Combiner* combiner,
                       std::span<const std::byte> contribution, const Target& to) {
  const std::uint32_t id = combiner == nullptr ? kNoCombiner : combiner->id;
  if (count == 0) {
    assign({1, of, id, false, {}, {}, &to});
  } else {
    if (!expect_like(messenger, of, id, &to)) return;
    ++count;
  }
  const std::uint64_t header[] = {index, contribution.size()};
  const auto* bytes = reinterpret_cast<const std::byte*>(header);
  items.insert(items.end(), bytes, bytes + sizeof header);
  items.insert(items.end(), contribution.begin(), contribution.end());
}

void Partial::add_contribution(Messenger& messenger, std::uint64_t index, Reducer of,
                               const Combiner* combiner, std::vector<std::byte>&& contribution,
                               const Target& to) {
  if ((count > 0 && has_value) || combiner == nullptr)
    return add_contribution(messenger, index, of, combiner, std::span<const std::byte>(contribution), to);
  add_contribution(messenger, index, of, combiner, std::span<const std::byte>(), to);
  std::swap(value, contribution);
}

void Partial::add(Messenger& messenger, const PartialView& from) {
  const Combiner* const combiner = add_all_but_value(messenger, from);
  if (combiner != nullptr) merge(messenger, *combiner, from.value);
}

void Partial::add_in_front(Messenger& messenger, const PartialView& from, std::vector<std::byte>& scratch) {
  const Combiner* const combiner = add_all_but_value(messenger, from);
  if (combiner == nullptr) return;
  scratch.assign(from.value.begin(), from.value.end());
  std::swap(scratch, value);
  merge(messenger, *combiner, scratch);
}

const Combiner* Partial::add_all_but_value(Messenger& messenger, const PartialView& from) {
  if (from.count == 0) return nullptr;
  if (count == 0) {
    assign(from);
    return nullptr;
  }
  if (!expect_like(messenger, from.reducer, from.combiner_id, from.target)) return nullptr;
  count += from.count;
  if (!has_target && from.target != nullptr) {
    has_target = true;
    target = *from.target;
  }
  items.insert(items.end(), from.items.begin(), from.items.end());
  if (!from.has_value) return nullptr;
  const Combiner* const combiner = Registry<Combiner>::find(combiner_id);
  if (combiner == nullptr) return find_deferred_combiner(messenger, from);
  return combiner;
}

const Combiner* Partial::find_deferred_combiner(Messenger& messenger, const PartialView& from) {
  const Combiner* const combiner =
      defers_values() ? Registry<Combiner>::find(combiner_id & ~kDeferredBit) : nullptr;
  if (combiner == nullptr) {
    messenger.fail(base::format(
        "a contribution names reducer {}, which PE {} does not have; do all PEs run the same program?",
        combiner_id & ~kDeferredBit, messenger.pe()));
    return nullptr;
  }
  if (has_value) return combiner;
  take_first_value(from.value);
  return nullptr;
}

void Partial::take_first_value(std::span<const std::byte> first) {
  has_value = true;
  value.assign(first.begin(), first.end());
}

bool Partial::expect_like(Messenger& messenger, Reducer of, std::uint32_t combiner, const Target* to) {
  if (reducer != of || combiner_id != combiner) [[unlikely]] {
    if (reducer != of || (combiner_id | kDeferredBit) != (combiner | kDeferredBit)) {
      fail_different_reducers(messenger);
      return false;
    }
    combiner_id |= kDeferredBit;
  }
  if (has_target && to != nullptr && is_for_all(target) != is_for_all(*to)) [[unlikely]] {
    fail_different_targets(messenger);
    return false;
  }
  return true;
}

void Partial::merge(Messenger& messenger, const Combiner& combiner, std::span<const std::byte> more) {
  try {
    combiner.function(messenger.runtime(), reducer, value, more);
  } catch (const AbandonedReduction&) {
    is_abandoned = true;
  } catch (...) {
    is_abandoned = true;
    fail_in_reducer(messenger, reducer == Reducer::kCustom ? combiner.name : reducer_name(reducer),
                    std::current_exception());
  }
}

std::span<const std::byte> Partial::result(Messenger& messenger) {
  if (reducer == Reducer::kGather || reducer == Reducer::kConcat) {
    value = join_items();
  } else if (!items.empty()) {
    merge_items(messenger);
  }
  return value;
}

// In the order of the indexes: ((first op second) op third) ...
void Partial::merge_items(Messenger& messenger) {
  const Combiner* const combiner = Registry<Combiner>::find(combiner_id);
  if (combiner == nullptr || has_value) {
    is_abandoned = true;
    return fail_different_reducers(messenger);
  }
  for (const Item& item : sorted_items(items, count)) {
    if (is_abandoned) return;
    if (has_value) {
      merge(messenger, *combiner, item.value);
    } else {
      take_first_value(item.value);
    }
  }
}

// Both come out as a packed std::vector: an element count, then the elements. A concat's contributions are packed
// vectors themselves, whose counts are added up and left out.
std::vector<std::byte> Partial::join_items() const {
  const std::vector<Item> list = sorted_items(items, count);
  const std::size_t skip = reducer == Reducer::kConcat ? sizeof(std::uint64_t) : 0;
  std::uint64_t total = 0;
  std::vector<std::byte> result(sizeof total);
  result.reserve(sizeof total + items.size() - list.size() * 2 * sizeof(std::uint64_t));
  for (const Item& item : list) {
    if (item.value.size() < skip) {
      base::refuse_claim(base::format("a contribution of {} bytes to a concatenation holds no element count",
                                      item.value.size()),
                         "contribute vectors");
    }
    total += skip == 0 ? 1 : base::unpack<std::uint64_t>(item.value.first(skip));
    result.insert(result.end(), item.value.begin() + static_cast<std::ptrdiff_t>(skip), item.value.end());
  }
  std::copy_n(reinterpret_cast<const std::byte*>(&total), sizeof total, result.begin());
  return result;
}

}  // namespace weft::runtime
