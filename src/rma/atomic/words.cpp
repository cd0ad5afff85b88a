#include "rma/atomic/words.h"

namespace weft::rma {

namespace {

bool is_bit_operation(AtomicKind kind) {
  return kind == AtomicKind::kAnd || kind == AtomicKind::kOr || kind == AtomicKind::kXor;
}

template <AtomicValue T>
std::uint64_t apply_to(AtomicKind kind, std::byte* word, std::uint64_t operand_bits,
                       std::uint64_t compare_bits) {
  const T operand = from_bits<T>(operand_bits);
  const T compare = from_bits<T>(compare_bits);
  switch (kind) {
    case AtomicKind::kLoad:
      return bits_of(apply_atomic<AtomicKind::kLoad, T>(word, operand, compare));
    case AtomicKind::kStore:
      return bits_of(apply_atomic<AtomicKind::kStore, T>(word, operand, compare));
    case AtomicKind::kAdd:
      return bits_of(apply_atomic<AtomicKind::kAdd, T>(word, operand, compare));
    case AtomicKind::kExchange:
      return bits_of(apply_atomic<AtomicKind::kExchange, T>(word, operand, compare));
    case AtomicKind::kCompareExchange:
      return bits_of(apply_atomic<AtomicKind::kCompareExchange, T>(word, operand, compare));
    case AtomicKind::kAnd:
      return bits_of(apply_atomic<AtomicKind::kAnd, T>(word, operand, compare));
    case AtomicKind::kOr:
      return bits_of(apply_atomic<AtomicKind::kOr, T>(word, operand, compare));
    case AtomicKind::kXor:
      return bits_of(apply_atomic<AtomicKind::kXor, T>(word, operand, compare));
  }
  return 0;
}

}  // namespace

bool is_atomic(AtomicKind kind, AtomicType type) {
  if (static_cast<int>(kind) >= kNumAtomicKinds || static_cast<int>(type) >= kNumAtomicTypes) return false;
  return !is_bit_operation(kind) || type == AtomicType::kInteger32 || type == AtomicType::kInteger64;
}

std::uint64_t apply_atomic(AtomicKind kind, AtomicType type, std::byte* word, std::uint64_t operand,
                           std::uint64_t compare) {
  switch (type) {
    case AtomicType::kInteger32:
      return apply_to<std::uint32_t>(kind, word, operand, compare);
    case AtomicType::kInteger64:
      return apply_to<std::uint64_t>(kind, word, operand, compare);
    case AtomicType::kFloat:
      return apply_to<float>(kind, word, operand, compare);
    case AtomicType::kDouble:
      return apply_to<double>(kind, word, operand, compare);
  }
  return 0;
}

}  // namespace weft::rma
