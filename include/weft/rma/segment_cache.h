// The host segments that this PE reaches by its own loads and stores, found by one look into a small table.
//
// It holds own segments and those of other PEs that this PE has mapped. It is a cache: a segment that is not in it may
// still be mapped. Each entry names the segment with its kind, so a pointer with a wrong kind is not found.
//
// Threads: the PE's.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "weft/rma/global_ptr.h"
#include "weft/rma/limits.h"

namespace weft::rma {

// The owner of a segment keeps it in memory that the PEs of its host share.
enum class SegmentState : std::uint8_t { kNone, kLive, kFreed };

inline SegmentState load_state(const std::uint8_t* state) {
  return static_cast<SegmentState>(
      std::atomic_ref(const_cast<std::uint8_t&>(*state)).load(std::memory_order_acquire));
}

class SegmentCache {
 public:
  struct CachedSegment {
    std::uint64_t segment_word = kNoSegment;
    std::uint64_t size_bytes = 0;
    std::byte* data = nullptr;
    const std::uint8_t* state = nullptr;
  };

  // The address of `size_bytes` at `address`; null if the segment is not in the table, does not contain them, or has been
  // freed.
  [[gnu::always_inline]] std::byte* find(const GlobalAddress& address, std::size_t size_bytes) const {
    const CachedSegment& entry = entries_[slot(address.segment_word())];
    if (entry.segment_word != address.segment_word() || size_bytes > entry.size_bytes ||
        address.offset_bytes() > entry.size_bytes - size_bytes ||
        load_state(entry.state) != SegmentState::kLive) [[unlikely]]
      return nullptr;
    return entry.data + address.offset_bytes();
  }

  // As find(), for one value of T. Null also if the address is not aligned to the size of T.
  template <class T>
  [[gnu::always_inline]] std::byte* find_aligned(const GlobalAddress& address) const {
    std::byte* const word = find(address, sizeof(T));
    return reinterpret_cast<std::uintptr_t>(word) % sizeof(T) == 0 ? word : nullptr;
  }

  void insert(const CachedSegment& entry) { entries_[slot(entry.segment_word)] = entry; }
  void erase(std::uint64_t segment_word) {
    CachedSegment& entry = entries_[slot(segment_word)];
    if (entry.segment_word == segment_word) entry = {};
  }
  void clear() { entries_.fill({}); }

 private:
  static constexpr std::size_t kEntries = 256;
  static constexpr std::uint64_t kNoSegment = ~std::uint64_t{0};
  // Up to 16 segments of 16 PEs have slots of their own, and so does one segment of 256 PEs.
  static std::size_t slot(std::uint64_t segment_word) {
    return static_cast<std::size_t>(segment_word ^ segment_word >> 28) % kEntries;
  }

  std::array<CachedSegment, kEntries> entries_;
};

}  // namespace weft::rma
