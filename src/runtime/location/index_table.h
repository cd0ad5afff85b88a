// A hash table from an object's index to its address: 16 bytes per slot, one probe as a rule, since every
// message to an object goes through it. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::runtime {

template <class T>
class IndexTable {
 public:
  T* find(std::uint64_t index) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t at = home(index);; at = next(at)) {
      const IndexSlot& slot = slots_[at];
      if (slot.object == nullptr) return nullptr;
      if (slot.index == index) return slot.object;
    }
  }

  // REQUIRES: object != nullptr and no object has that index.
  void insert(std::uint64_t index, T* object) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    std::size_t at = home(index);
    while (slots_[at].object != nullptr) at = next(at);
    slots_[at] = {index, object};
    ++size_;
  }

  // The object that had the index, null for none.
  T* erase(std::uint64_t index) {
    if (slots_.empty()) return nullptr;
    std::size_t at = home(index);
    while (slots_[at].object != nullptr && slots_[at].index != index) at = next(at);
    T* erased = std::exchange(slots_[at].object, nullptr);
    if (erased == nullptr) return nullptr;
    --size_;
    // Moves back what was displaced over the hole, so that no probe ends there too early.
    for (std::size_t from = next(at); slots_[from].object != nullptr; from = next(from)) {
      std::size_t wanted = home(slots_[from].index);
      if (((from - wanted) & mask()) >= ((from - at) & mask())) {
        slots_[at] = std::exchange(slots_[from], IndexSlot{});
        at = from;
      }
    }
    return erased;
  }

  std::size_t size() const { return size_; }

  void reserve(std::size_t count) {
    while (count * 4 > slots_.size() * 3) grow();
  }

  template <class Function>
  void for_each(Function function) const {
    for (const IndexSlot& slot : slots_) {
      if (slot.object != nullptr) function(slot.index, *slot.object);
    }
  }

 private:
  struct IndexSlot {
    std::uint64_t index = 0;
    T* object = nullptr;
  };

  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home(std::uint64_t index) const {
    return static_cast<std::size_t>((index * 0x9e3779b97f4a7c15) >> 32) & mask();
  }
  std::size_t next(std::size_t at) const { return (at + 1) & mask(); }

  void grow() {
    std::vector<IndexSlot> old(slots_.empty() ? 8 : slots_.size() * 2);
    old.swap(slots_);
    size_ = 0;
    for (const IndexSlot& slot : old) {
      if (slot.object != nullptr) insert(slot.index, slot.object);
    }
  }

  std::vector<IndexSlot> slots_;
  std::size_t size_ = 0;
};

}  // namespace weft::runtime
