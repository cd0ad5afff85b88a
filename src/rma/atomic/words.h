// An atomic operation whose kind and type are known at run time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/rma/atomic_word.h"

namespace weft::rma {

inline std::size_t atomic_bytes(AtomicType type) {
  return type == AtomicType::kInteger32 || type == AtomicType::kFloat ? 4 : 8;
}
// Whether the pair exists: there are no bit operations on floating-point numbers.
bool is_atomic(AtomicKind kind, AtomicType type);
// Returns the bits of the value before. REQUIRES: is_atomic(), and `word` is aligned.
std::uint64_t apply_atomic(AtomicKind kind, AtomicType type, std::byte* word, std::uint64_t operand,
                           std::uint64_t compare);

}  // namespace weft::rma
