// Numbers for operations that wait for a peer's answer. A number is valid once: its slot counts the operations it had.
//
// Threads: the PE's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weft::mpi {

template <class T>
class AwaitedAnswers {
 public:
  // A number that is not 0, for take(). `rank`: the only one that may answer.
  std::uint64_t add(T* awaiting, int rank) {
    std::uint32_t at = first_free_;
    if (at == kNone) {
      at = static_cast<std::uint32_t>(slots_.size());
      slots_.emplace_back();
    } else {
      first_free_ = slots_[at].next_free;
    }
    AnswerSlot& slot = slots_[at];
    slot.awaiting = awaiting;
    slot.rank = rank;
    if (++slot.turn == 0) slot.turn = 1;
    return std::uint64_t{slot.turn} << 32 | at;
  }
  // Null if that rank was not asked under this number.
  T* take(std::uint64_t number, int rank) {
    const auto at = static_cast<std::uint32_t>(number);
    if (at >= slots_.size()) return nullptr;
    AnswerSlot& slot = slots_[at];
    if (slot.awaiting == nullptr || slot.rank != rank || slot.turn != number >> 32) return nullptr;
    T* const awaiting = slot.awaiting;
    slot.awaiting = nullptr;
    slot.next_free = first_free_;
    first_free_ = at;
    return awaiting;
  }
  bool awaits(int rank) const {
    return std::ranges::any_of(
        slots_, [rank](const AnswerSlot& slot) { return slot.awaiting != nullptr && slot.rank == rank; });
  }
  // Those that wait for that rank; their numbers are not valid afterwards.
  std::vector<T*> take_of(int rank) {
    std::vector<T*> waiting;
    for (std::uint32_t at = 0; at < slots_.size(); ++at) {
      if (slots_[at].awaiting == nullptr || slots_[at].rank != rank) continue;
      waiting.push_back(take(std::uint64_t{slots_[at].turn} << 32 | at, rank));
    }
    return waiting;
  }
  // All that wait; no number is valid afterwards.
  std::vector<T*> take_all() {
    std::vector<T*> waiting;
    for (const AnswerSlot& slot : slots_) {
      if (slot.awaiting != nullptr) waiting.push_back(slot.awaiting);
    }
    slots_.clear();
    first_free_ = kNone;
    return waiting;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct AnswerSlot {
    T* awaiting = nullptr;
    int rank = 0;
    std::uint32_t turn = 0;
    std::uint32_t next_free = kNone;
  };
  std::vector<AnswerSlot> slots_;
  std::uint32_t first_free_ = kNone;
};

}  // namespace weft::mpi
