// The objects that a walk over a value has met: a set of addresses, which is small as a rule.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::python {

class MetObjects {
 public:
  // Returns whether the object was not there.
  bool add(const void* object) {
    if (!table_.empty()) [[unlikely]]
      return add_to_table(object);
    for (std::size_t i = 0; i < count_; ++i) {
      if (few_[i] == object) return false;
    }
    if (count_ == few_.size()) [[unlikely]] {
      enlarge();
      return add_to_table(object);
    }
    few_[count_++] = object;
    return true;
  }

  bool has(const void* object) const {
    if (!table_.empty()) return table_[slot_of(object)] == object;
    for (std::size_t i = 0; i < count_; ++i) {
      if (few_[i] == object) return true;
    }
    return false;
  }

 private:
  // Open addressing, at most half full.
  std::size_t slot_of(const void* object) const {
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = ((reinterpret_cast<std::uintptr_t>(object) * golden) >> 32) & mask;
    while (table_[slot] != nullptr && table_[slot] != object) slot = (slot + 1) & mask;
    return slot;
  }

  [[gnu::noinline]] bool add_to_table(const void* object) {
    const std::size_t slot = slot_of(object);
    if (table_[slot] == object) return false;
    table_[slot] = object;
    if (2 * ++count_ > table_.size()) enlarge();
    return true;
  }

  [[gnu::noinline]] void enlarge() {
    constexpr std::size_t first_size = 64;
    std::vector<const void*> before(table_.empty() ? first_size : 2 * table_.size());
    before.swap(table_);
    for (const void* const object : before) {
      if (object != nullptr) table_[slot_of(object)] = object;
    }
    if (!before.empty()) return;
    for (const void* const object : few_) table_[slot_of(object)] = object;
  }

  std::array<const void*, 8> few_{};
  std::size_t count_ = 0;
  std::vector<const void*> table_;  // empty while there are few
};

}  // namespace weft::python
