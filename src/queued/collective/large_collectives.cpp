#include "queued/collective/large_collectives.h"

#include <algorithm>

namespace weft::queued {

namespace {

// Pieces and parts of them begin at multiples of this, so that reductions read aligned words.
constexpr std::size_t kPieceAlignment = 16;

// Calls `body(place, begin, size)` for the pieces of size_bytes. The body writes the own place, calls barrier(), and reads. All
// have read a place before it is written again: the next piece has the other place, and its barrier comes between. Only behind an odd
// number of pieces place 0 is still read, which the next operation writes without a barrier.
template <class Body>
void in_pieces(GroupState& group, std::size_t size_bytes, std::size_t piece_bytes,
               memory::StreamHandle stream, const Body& body) {
  std::size_t place = 0;
  for (std::size_t begin = 0; begin < size_bytes; begin += piece_bytes, place ^= 1)
    body(place, begin, std::min(piece_bytes, size_bytes - begin));
  if (place == 1) group.barrier(stream);
}

memory::DeviceReduction reduction_of_rooms(const GroupState& group, std::size_t place, std::size_t offset,
                                           std::size_t size_bytes, std::byte* out, ElementRule rule) {
  memory::DeviceReduction reduction;
  for (int rank = 0; rank < group.size(); ++rank) reduction.sources.add(group.large(rank, place) + offset);
  reduction.out = out;
  reduction.num_elements = size_bytes / size_of(rule.type);
  reduction.type = rule.type;
  reduction.combination = rule.combination;
  return reduction;
}

// A place with the same piece of the part of each member.
std::size_t piece_of_parts(const GroupState& group) {
  return group.layout().large_bytes() / static_cast<std::size_t>(group.size()) / kPieceAlignment *
         kPieceAlignment;
}

// Each member combines all, see most_whole_bytes(): no slices are gathered.
void whole_reduce(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                  ElementRule rule, int root, memory::StreamHandle stream) {
  in_pieces(group, size_bytes, group.layout().large_bytes(), stream,
            [&](std::size_t place, std::size_t begin, std::size_t size) {
              group.copy(group.large(group.rank(), place), in + begin, size, stream);
              group.barrier(stream);
              if (root == kToAll || root == group.rank())
                group.reduce(reduction_of_rooms(group, place, 0, size, out + begin, rule), stream);
            });
}

}  // namespace

void large_broadcast(GroupState& group, std::byte* data, std::size_t size_bytes, int root,
                     memory::StreamHandle stream) {
  in_pieces(group, size_bytes, group.layout().large_bytes(), stream,
            [&](std::size_t place, std::size_t begin, std::size_t size) {
              const bool is_root = group.rank() == root;
              if (is_root) group.copy(group.large(root, place), data + begin, size, stream);
              group.barrier(stream);
              if (!is_root) group.copy(data + begin, group.large(root, place), size, stream);
            });
}

// Each member combines a slice of the piece. Contributions are in place 0 and combined slices in place 1. The barrier before slices are
// read lets the next piece, and the next operation, write place 0; that of the next piece lets it write place 1.
void large_reduce(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                  ElementRule rule, int root, memory::StreamHandle stream) {
  const auto num_members = static_cast<std::size_t>(group.size());
  if ((num_members - 1) * size_bytes <= group.layout().most_whole_bytes())
    return whole_reduce(group, in, out, size_bytes, rule, root, stream);
  const std::size_t piece_bytes = group.layout().large_bytes();
  for (std::size_t begin = 0; begin < size_bytes; begin += piece_bytes) {
    const std::size_t size = std::min(piece_bytes, size_bytes - begin);
    const std::size_t slice_bytes = (size / num_members / kPieceAlignment + 1) * kPieceAlignment;
    const auto slice_begin = [&](int rank) {
      return std::min(size, slice_bytes * static_cast<std::size_t>(rank));
    };
    const auto slice_size = [&](int rank) { return slice_begin(rank + 1) - slice_begin(rank); };
    const int me = group.rank();
    group.copy(group.large(me, 0), in + begin, size, stream);
    group.barrier(stream);
    if (slice_size(me) > 0) {
      group.reduce(reduction_of_rooms(group, 0, slice_begin(me), slice_size(me),
                                      group.large(me, 1) + slice_begin(me), rule),
                   stream);
    }
    group.barrier(stream);
    if (root != kToAll && root != me) continue;
    for (int rank = 0; rank < group.size(); ++rank) {
      group.copy(out + begin + slice_begin(rank), group.large(rank, 1) + slice_begin(rank), slice_size(rank),
                 stream);
    }
  }
}

void large_all_gather(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                      memory::StreamHandle stream) {
  const auto part = [&](int rank) { return out + static_cast<std::size_t>(rank) * size_bytes; };
  in_pieces(group, size_bytes, group.layout().large_bytes(), stream,
            [&](std::size_t place, std::size_t begin, std::size_t size) {
              group.copy(group.large(group.rank(), place), in + begin, size, stream);
              group.barrier(stream);
              for (int rank = 0; rank < group.size(); ++rank) {
                if (rank == group.rank()) continue;
                group.copy(part(rank) + begin, group.large(rank, place), size, stream);
              }
            });
  group.copy(part(group.rank()), in, size_bytes, stream);
}

void large_reduce_scatter(GroupState& group, const std::byte* in, std::byte* out, std::size_t part_bytes,
                          ElementRule rule, memory::StreamHandle stream) {
  in_pieces(group, part_bytes, piece_of_parts(group), stream,
            [&](std::size_t place, std::size_t begin, std::size_t size) {
              group.copy_parts(group.large(group.rank(), place), in + begin, part_bytes, size, stream);
              group.barrier(stream);
              const std::size_t mine = static_cast<std::size_t>(group.rank()) * size;
              group.reduce(reduction_of_rooms(group, place, mine, size, out + begin, rule), stream);
            });
}

void large_all_to_all(GroupState& group, const std::byte* in, std::byte* out, std::size_t part_bytes,
                      memory::StreamHandle stream) {
  in_pieces(group, part_bytes, piece_of_parts(group), stream,
            [&](std::size_t place, std::size_t begin, std::size_t size) {
              group.copy_parts(group.large(group.rank(), place), in + begin, part_bytes, size, stream);
              group.barrier(stream);
              const std::size_t mine = static_cast<std::size_t>(group.rank()) * size;
              for (int rank = 0; rank < group.size(); ++rank) {
                group.copy(out + static_cast<std::size_t>(rank) * part_bytes + begin,
                           group.large(rank, place) + mine, size, stream);
              }
            });
}

}  // namespace weft::queued
