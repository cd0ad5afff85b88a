// Collectives of data that does not fit into a ring's place: in pieces, by copies and reductions of the whole device. See
// group_state.h for the places.
//
// Threads: the PE's. All throw Error. Sizes and offsets are in bytes, and multiples of the elements.
#pragma once

#include <cstddef>

#include "queued/collective/group_state.h"

namespace weft::queued {

// How elements are combined.
struct ElementRule {
  memory::ElementType type;
  memory::Combination combination;
};

void large_broadcast(GroupState& group, std::byte* data, std::size_t size_bytes, int root,
                     memory::StreamHandle stream);
// The members to which the result goes: all, or one.
inline constexpr int kToAll = -1;
void large_reduce(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                  ElementRule rule, int root, memory::StreamHandle stream);
void large_all_gather(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                      memory::StreamHandle stream);
// part_bytes: of each member's part.
void large_reduce_scatter(GroupState& group, const std::byte* in, std::byte* out, std::size_t part_bytes,
                          ElementRule rule, memory::StreamHandle stream);
void large_all_to_all(GroupState& group, const std::byte* in, std::byte* out, std::size_t part_bytes,
                      memory::StreamHandle stream);

}  // namespace weft::queued
