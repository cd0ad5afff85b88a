// Atomic operations on one value in host memory, as the CPU does them: the only implementation, for values that this PE
// reaches itself and for those that it serves for other PEs.
//
// Threads: any; other processes may work on the same value.
#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weft::rma {

template <class T>
concept AtomicInteger = std::integral<T> && !std::same_as<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicValue = AtomicInteger<T> || std::same_as<T, float> || std::same_as<T, double>;

enum class AtomicKind : std::uint8_t { kLoad, kStore, kAdd, kExchange, kCompareExchange, kAnd, kOr, kXor };
inline constexpr int kNumAtomicKinds = 8;
// Signed and unsigned integers add alike.
enum class AtomicType : std::uint8_t { kInteger32, kInteger64, kFloat, kDouble };
inline constexpr int kNumAtomicTypes = 4;

template <AtomicValue T>
inline constexpr AtomicType kAtomicType = std::same_as<T, float>    ? AtomicType::kFloat
                                          : std::same_as<T, double> ? AtomicType::kDouble
                                          : sizeof(T) == 4          ? AtomicType::kInteger32
                                                                    : AtomicType::kInteger64;

template <AtomicValue T>
using AtomicBits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <AtomicValue T>
std::uint64_t bits_of(T value) {
  return std::bit_cast<AtomicBits<T>>(value);
}
template <AtomicValue T>
T from_bits(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<AtomicBits<T>>(bits));
}

// Returns the value before. REQUIRES: `word` is aligned to sizeof(T).
template <AtomicKind kKind, AtomicValue T>
T apply_atomic(std::byte* word, T operand, T compare) {
  using Bits = AtomicBits<T>;
  static_assert(std::atomic_ref<Bits>::is_always_lock_free &&
                std::atomic_ref<Bits>::required_alignment == sizeof(T));
  const std::atomic_ref<Bits> value(*reinterpret_cast<Bits*>(word));
  const auto bits = std::bit_cast<Bits>(operand);
  constexpr auto kOrder = std::memory_order_acq_rel;
  if constexpr (kKind == AtomicKind::kLoad) {
    return std::bit_cast<T>(value.load(std::memory_order_acquire));
  } else if constexpr (kKind == AtomicKind::kStore) {
    value.store(bits, std::memory_order_release);
    return T();
  } else if constexpr (kKind == AtomicKind::kAdd && std::integral<T>) {
    return std::bit_cast<T>(value.fetch_add(bits, kOrder));
  } else if constexpr (kKind == AtomicKind::kAdd) {
    Bits before = value.load(std::memory_order_relaxed);
    while (!value.compare_exchange_weak(before, std::bit_cast<Bits>(std::bit_cast<T>(before) + operand),
                                        kOrder, std::memory_order_relaxed)) {
    }
    return std::bit_cast<T>(before);
  } else if constexpr (kKind == AtomicKind::kExchange) {
    return std::bit_cast<T>(value.exchange(bits, kOrder));
  } else if constexpr (kKind == AtomicKind::kCompareExchange) {
    auto before = std::bit_cast<Bits>(compare);
    value.compare_exchange_strong(before, bits, kOrder, std::memory_order_acquire);
    return std::bit_cast<T>(before);
  } else if constexpr (kKind == AtomicKind::kAnd) {
    return std::bit_cast<T>(value.fetch_and(bits, kOrder));
  } else if constexpr (kKind == AtomicKind::kOr) {
    return std::bit_cast<T>(value.fetch_or(bits, kOrder));
  } else {
    return std::bit_cast<T>(value.fetch_xor(bits, kOrder));
  }
}

}  // namespace weft::rma
