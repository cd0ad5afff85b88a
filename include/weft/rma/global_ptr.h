// weft::GlobalPtr<T>: a pointer to elements in a segment of any PE, in memory of any kind.
//
// It has 16 bytes, and travels in messages and lies in segments as any plain value does. It names a PE, a segment of that
// PE, the segment's memory kind, and an offset in bytes. A segment number is never used again, so a pointer into a freed
// segment leads to an error and not to other memory.
//
// Arithmetic counts in elements and checks nothing: an operation on memory outside of the segment is an error of that
// operation. Pgas (weft/pgas/pgas.h) has the operations.
//
// Threads: any.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "weft/memory/buffer.h"

namespace weft::rma {

// A global pointer without a type.
class GlobalAddress {
 public:
  static constexpr int kSegmentBits = 24;
  static constexpr std::uint32_t kMaxSegment = (std::uint32_t{1} << kSegmentBits) - 1;

  // The null pointer.
  constexpr GlobalAddress() = default;
  // REQUIRES: 1 <= segment <= kMaxSegment.
  constexpr GlobalAddress(int pe, std::uint32_t segment, memory::Kind kind, std::uint64_t offset_bytes)
      : segment_word_(std::uint64_t{static_cast<std::uint32_t>(pe)} | std::uint64_t{segment} << kPeBits |
                      static_cast<std::uint64_t>(kind) << (kPeBits + kSegmentBits)),
        offset_bytes_(offset_bytes) {}

  constexpr bool is_null() const { return segment() == 0; }
  // The PE that owns the segment: the affinity of the memory.
  constexpr int pe() const { return static_cast<int>(static_cast<std::uint32_t>(segment_word_)); }
  constexpr std::uint32_t segment() const {
    return static_cast<std::uint32_t>(segment_word_ >> kPeBits) & kMaxSegment;
  }
  constexpr memory::Kind kind() const {
    return static_cast<memory::Kind>(segment_word_ >> (kPeBits + kSegmentBits));
  }
  constexpr std::uint64_t offset_bytes() const { return offset_bytes_; }
  // PE, segment and kind in one number.
  constexpr std::uint64_t segment_word() const { return segment_word_; }

  // Whether what is packed now is saved.
  static bool is_checked();
  // Throws Error(kInvalidArgument) if it is packed into a state that is saved, and is not null: a later job has no such segment.
  void expect_packable() const {
    if (!is_null()) refuse_saving();
  }

  // It wraps below 0 and above 2^64, which no segment contains.
  constexpr GlobalAddress moved_by(std::ptrdiff_t size_bytes) const {
    GlobalAddress moved = *this;
    moved.offset_bytes_ += static_cast<std::uint64_t>(size_bytes);
    return moved;
  }

  friend constexpr bool operator==(const GlobalAddress&, const GlobalAddress&) = default;
  friend constexpr auto operator<=>(const GlobalAddress&, const GlobalAddress&) = default;

 private:
  static constexpr int kPeBits = 32;

  void refuse_saving() const;  // if a state is being saved

  std::uint64_t segment_word_ = 0;
  std::uint64_t offset_bytes_ = 0;
};
static_assert(sizeof(GlobalAddress) == 16 && std::is_trivially_copyable_v<GlobalAddress>);

// "byte 96 of segment 3 of PE 2 (host)"; "the null pointer".
std::string describe(const GlobalAddress& address);

template <class T>
class GlobalPtr {
  static_assert(std::is_trivially_copyable_v<T>, "a segment holds plain bytes");

 public:
  using Element = T;

  constexpr GlobalPtr() = default;
  constexpr GlobalPtr(std::nullptr_t) {}
  constexpr explicit GlobalPtr(const GlobalAddress& address) : address_(address) {}
  // To a pointer to const elements.
  constexpr operator GlobalPtr<const T>() const
    requires(!std::is_const_v<T>)
  {
    return GlobalPtr<const T>(address_);
  }

  constexpr const GlobalAddress& address() const { return address_; }
  constexpr explicit operator bool() const { return !address_.is_null(); }
  constexpr int pe() const { return address_.pe(); }
  constexpr std::uint32_t segment() const { return address_.segment(); }
  constexpr memory::Kind kind() const { return address_.kind(); }
  constexpr std::uint64_t offset_bytes() const { return address_.offset_bytes(); }
  static bool is_checked() { return GlobalAddress::is_checked(); }
  void expect_packable() const { address_.expect_packable(); }
  // A pointer to the same byte.
  template <class U>
  constexpr GlobalPtr<U> cast() const {
    return GlobalPtr<U>(address_);
  }

  constexpr GlobalPtr& operator+=(std::ptrdiff_t count) {
    address_ = address_.moved_by(count * static_cast<std::ptrdiff_t>(sizeof(T)));
    return *this;
  }
  constexpr GlobalPtr& operator-=(std::ptrdiff_t count) { return *this += -count; }
  constexpr GlobalPtr& operator++() { return *this += 1; }
  constexpr GlobalPtr& operator--() { return *this += -1; }
  friend constexpr GlobalPtr operator+(GlobalPtr pointer, std::ptrdiff_t count) { return pointer += count; }
  friend constexpr GlobalPtr operator+(std::ptrdiff_t count, GlobalPtr pointer) { return pointer += count; }
  friend constexpr GlobalPtr operator-(GlobalPtr pointer, std::ptrdiff_t count) { return pointer -= count; }
  // In elements. REQUIRES: both point into the same segment.
  friend constexpr std::ptrdiff_t operator-(const GlobalPtr& a, const GlobalPtr& b) {
    return static_cast<std::ptrdiff_t>(a.offset_bytes() - b.offset_bytes()) /
           static_cast<std::ptrdiff_t>(sizeof(T));
  }

  // Pointers into one segment are ordered by offset. Others have some order, the same on every PE.
  friend constexpr bool operator==(const GlobalPtr&, const GlobalPtr&) = default;
  friend constexpr auto operator<=>(const GlobalPtr&, const GlobalPtr&) = default;

 private:
  GlobalAddress address_;
};
static_assert(sizeof(GlobalPtr<double>) == 16 && std::is_trivially_copyable_v<GlobalPtr<double>>);

}  // namespace weft::rma
