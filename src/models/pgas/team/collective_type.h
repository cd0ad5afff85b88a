// CollectiveType: what the ranks of a team must agree on about one of their collectives, in 32 bits, so that it travels in the number
// of a call of the engine. Threads: any; these are plain values.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>

#include "weft/runtime/reduction.h"

#include "collective/form.h"

namespace weft::pgas {

enum class CollectiveKind : std::uint8_t {
  kBroadcast,
  kReduce,
  kAllReduce,
  kAllGather,
  kBroadcastBuffer,
  kReduceBuffer,
  kAllReduceBuffer,
  kBarrier,
  kNumKinds,
};

// As programs write it.
std::string_view name_of(CollectiveKind kind);

// The properties of a collective on which all its ranks must agree.
struct CollectiveType {
  // The kind, and above its 4 bits the way: how the data travels, which all ranks choose by what all know.
  std::uint8_t kind_and_way = 0;
  std::uint8_t root = 0;   // its last bits
  std::uint16_t data = 0;  // a hash of the reducer, the type of the values and the other bits of the root

  static constexpr int kParts = 0;
  static int way_of(collective::Form form) { return static_cast<int>(form) + 1; }
  // `type`: of the values.
  static CollectiveType of(CollectiveKind kind, int root, runtime::Reducer reducer, std::uint64_t type,
                           int way = kParts);
  CollectiveKind kind() const { return static_cast<CollectiveKind>(kind_and_way & 0xf); }
  bool operator==(const CollectiveType&) const = default;
};
static_assert(std::has_unique_object_representations_v<CollectiveType> && sizeof(CollectiveType) == 4);

// The number of a call of the engine.
inline std::uint64_t engine_number(std::uint32_t collective, const CollectiveType& type) {
  return std::uint64_t{std::bit_cast<std::uint32_t>(type)} << 32 | collective;
}
inline CollectiveType type_in(std::uint64_t engine_number) {
  return std::bit_cast<CollectiveType>(static_cast<std::uint32_t>(engine_number >> 32));
}

// What a rank says about another one that has begun another collective. REQUIRES: the two differ.
std::string difference(const CollectiveType& mine, const CollectiveType& theirs, int rank);
// Of a rank that gets so many bytes where it awaits so many.
std::exception_ptr wrong_size(CollectiveKind kind, int from, std::size_t arrived_bytes, int rank,
                              std::size_t awaited_bytes);

}  // namespace weft::pgas
