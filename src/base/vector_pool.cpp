#include "weft/base/vector_pool.h"

#include <algorithm>
#include <iterator>

namespace weft::base {

const ElementType* ElementType::find(std::uint64_t id) {
  for (const ElementType* one = first_; one != nullptr; one = one->next_) {
    if (one->id_ == id) return one;
  }
  return nullptr;
}

std::unique_ptr<AnyVector> VectorPool::take(const ElementType& type, std::size_t size) {
  std::vector<Kept>& kept = free_list(type).kept;
  // Takes storage of up to twice the size, so that sizes that differ a little share it.
  // If several have the same size, takes the one that was kept last: the cache may still hold it.
  std::unique_ptr<AnyVector> values;
  if (auto found = std::ranges::lower_bound(kept, size, {}, &Kept::capacity);
      found != kept.end() && found->capacity / 2 <= size) {
    found = std::prev(std::ranges::upper_bound(kept, found->capacity, {}, &Kept::capacity));
    values = std::move(found->values);
    kept_bytes_ -= found->capacity * type.size_bytes();
    kept.erase(found);
  } else {
    values = type.make();
  }
  values->resize(size);  // kept storage has its former size: only further elements are written
  return values;
}

void VectorPool::keep(const ElementType& type, std::unique_ptr<AnyVector> values) {
  const std::size_t capacity = values->capacity();
  const std::size_t size_bytes = capacity * type.size_bytes();
  if (size_bytes == 0 || size_bytes > kMaxKeptBytes - kept_bytes_) return;
  std::vector<Kept>& kept = free_list(type).kept;
  kept.insert(std::ranges::upper_bound(kept, capacity, {}, &Kept::capacity), {capacity, std::move(values)});
  kept_bytes_ += size_bytes;
}

VectorPool::FreeList& VectorPool::free_list(const ElementType& type) {
  const auto found = std::ranges::find(free_lists_, &type, &FreeList::type);
  return found != free_lists_.end() ? *found : free_lists_.emplace_back(FreeList{&type, {}});
}

void GivenVector::release(void* self) {
  const std::unique_ptr<GivenVector> given(static_cast<GivenVector*>(self));
  given->pool.keep(given->type, std::move(given->values));
}

}  // namespace weft::base
