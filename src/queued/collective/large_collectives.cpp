#include "queued/collective/large_collectives.h"

#include <algorithm>

namespace weft::queued {

namespace {

// Pieces and parts of them begin at multiples of this, so that reductions read aligned words.
constexpr std::size_t kPieceAlignment = 16;

struct Piece {
  std::size_t place;
  std::size_t begin;
  std::size_t size;
};

// Moves size_bytes in pieces: write(piece, copies) adds what this member writes into the place of a piece, and read(piece, copies) what
// it reads of its peers' places behind a barrier. A piece is written in the launch in which the one before is read. All have
// read a place before it is written again: the next piece has the other place, and its barrier comes between. Only behind an odd
// number of pieces place 0 is still read, which the next operation writes without a barrier.
template <class Write, class Read>
void in_pieces(GroupState& group, std::size_t size_bytes, std::size_t piece_bytes,
               memory::StreamHandle stream, const Write& write, const Read& read) {
  const auto piece_at = [&](std::size_t number) {
    const std::size_t begin = std::min(number * piece_bytes, size_bytes);
    return Piece{number % 2, begin, std::min(piece_bytes, size_bytes - begin)};
  };
  const std::size_t num_pieces = (size_bytes + piece_bytes - 1) / piece_bytes;
  GroupCopies copies(group, stream);
  if (num_pieces > 0) write(piece_at(0), copies);
  for (std::size_t i = 0; i < num_pieces; ++i) {
    copies.flush();
    group.barrier(stream);
    read(piece_at(i), copies);
    if (i + 1 < num_pieces) write(piece_at(i + 1), copies);
  }
  copies.flush();
  if (num_pieces % 2 == 1) group.barrier(stream);
}

// The contribution of this member is at `own`: no peer reads it, so it need not be in its room.
memory::DeviceReduction reduction_of_rooms(const GroupState& group, std::size_t place, std::size_t offset,
                                           const std::byte* own, std::size_t size_bytes, std::byte* out,
                                           ElementRule rule) {
  memory::DeviceReduction reduction;
  for (int rank = 0; rank < group.size(); ++rank)
    reduction.sources.add(rank == group.rank() ? own : group.large(rank, place) + offset);
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

// Writes a piece of each peer's part, to where it is if those of all members follow one another. Parts begin part_bytes from one
// another.
void write_parts(const GroupState& group, const Piece& piece, const std::byte* in, std::size_t part_bytes,
                 GroupCopies& copies) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == group.rank()) continue;
    const auto part = static_cast<std::size_t>(rank);
    copies.add(group.large(group.rank(), piece.place) + part * piece.size,
               in + part * part_bytes + piece.begin, piece.size);
  }
}

// Each member combines all, see most_whole_bytes(): no slices are gathered.
void whole_reduce(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                  ElementRule rule, int root, memory::StreamHandle stream) {
  in_pieces(
      group, size_bytes, group.layout().large_bytes(), stream,
      [&](const Piece& piece, GroupCopies& copies) {
        copies.add(group.large(group.rank(), piece.place), in + piece.begin, piece.size);
      },
      [&](const Piece& piece, GroupCopies&) {
        if (root != kToAll && root != group.rank()) return;
        group.reduce(
            reduction_of_rooms(group, piece.place, 0, in + piece.begin, piece.size, out + piece.begin, rule),
            stream);
      });
}

}  // namespace

void large_broadcast(GroupState& group, std::byte* data, std::size_t size_bytes, int root,
                     memory::StreamHandle stream) {
  const bool is_root = group.rank() == root;
  in_pieces(
      group, size_bytes, group.layout().large_bytes(), stream,
      [&](const Piece& piece, GroupCopies& copies) {
        if (is_root) copies.add(group.large(root, piece.place), data + piece.begin, piece.size);
      },
      [&](const Piece& piece, GroupCopies& copies) {
        if (!is_root) copies.add(data + piece.begin, group.large(root, piece.place), piece.size);
      });
}

// Each member combines a slice of the piece. Contributions are in place 0 and combined slices in place 1. The barrier before slices are
// read lets the next piece, and the next operation, write place 0; that of the next piece lets it write place 1.
void large_reduce(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                  ElementRule rule, int root, memory::StreamHandle stream) {
  const auto num_members = static_cast<std::size_t>(group.size());
  if ((num_members - 1) * size_bytes <= group.layout().most_whole_bytes())
    return whole_reduce(group, in, out, size_bytes, rule, root, stream);
  const int me = group.rank();
  const bool has_result = root == kToAll || root == me;
  const std::size_t piece_bytes = group.layout().large_bytes();
  // Slices of the piece that begins there.
  struct Slices {
    std::size_t begin_of_piece;
    std::size_t size_of_piece;
    std::size_t slice_bytes;
    std::size_t begin(int rank) const {
      return std::min(size_of_piece, slice_bytes * static_cast<std::size_t>(rank));
    }
    std::size_t size(int rank) const { return begin(rank + 1) - begin(rank); }
  };
  const auto slices_at = [&](std::size_t begin) {
    const std::size_t size = std::min(piece_bytes, size_bytes - begin);
    return Slices{begin, size, (size / num_members / kPieceAlignment + 1) * kPieceAlignment};
  };
  GroupCopies copies(group, stream);
  const auto write = [&](const Slices& slices) {  // what peers combine
    const std::size_t end_of_mine = slices.begin(me + 1);
    const std::byte* const from = in + slices.begin_of_piece;
    copies.add(group.large(me, 0), from, slices.begin(me));
    copies.add(group.large(me, 0) + end_of_mine, from + end_of_mine, slices.size_of_piece - end_of_mine);
  };
  write(slices_at(0));
  for (std::size_t begin = 0; begin < size_bytes; begin += piece_bytes) {
    const Slices slices = slices_at(begin);
    const std::size_t mine = slices.begin(me);
    copies.flush();
    group.barrier(stream);
    if (slices.size(me) > 0) {
      memory::DeviceReduction reduction = reduction_of_rooms(
          group, 0, mine, in + begin + mine, slices.size(me), group.large(me, 1) + mine, rule);
      if (has_result) reduction.also = out + begin + mine;
      group.reduce(reduction, stream);
    }
    group.barrier(stream);
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank == me || !has_result) continue;
      copies.add(out + begin + slices.begin(rank), group.large(rank, 1) + slices.begin(rank),
                 slices.size(rank));
    }
    if (begin + piece_bytes < size_bytes) write(slices_at(begin + piece_bytes));
  }
  copies.flush();
}

void large_all_gather(GroupState& group, const std::byte* in, std::byte* out, std::size_t size_bytes,
                      memory::StreamHandle stream) {
  const auto part = [&](int rank) { return out + static_cast<std::size_t>(rank) * size_bytes; };
  in_pieces(
      group, size_bytes, group.layout().large_bytes(), stream,
      [&](const Piece& piece, GroupCopies& copies) {
        copies.add(group.large(group.rank(), piece.place), in + piece.begin, piece.size);
      },
      [&](const Piece& piece, GroupCopies& copies) {
        for (int rank = 0; rank < group.size(); ++rank) {
          const std::byte* const from =
              rank == group.rank() ? in + piece.begin : group.large(rank, piece.place);
          copies.add(part(rank) + piece.begin, from, piece.size);
        }
      });
}

void large_reduce_scatter(GroupState& group, const std::byte* in, std::byte* out, std::size_t part_bytes,
                          ElementRule rule, memory::StreamHandle stream) {
  const auto me = static_cast<std::size_t>(group.rank());
  in_pieces(
      group, part_bytes, piece_of_parts(group), stream,
      [&](const Piece& piece, GroupCopies& copies) { write_parts(group, piece, in, part_bytes, copies); },
      [&](const Piece& piece, GroupCopies&) {
        group.reduce(
            reduction_of_rooms(group, piece.place, me * piece.size, in + me * part_bytes + piece.begin,
                               piece.size, out + piece.begin, rule),
            stream);
      });
}

void large_all_to_all(GroupState& group, const std::byte* in, std::byte* out, std::size_t part_bytes,
                      memory::StreamHandle stream) {
  in_pieces(
      group, part_bytes, piece_of_parts(group), stream,
      [&](const Piece& piece, GroupCopies& copies) { write_parts(group, piece, in, part_bytes, copies); },
      [&](const Piece& piece, GroupCopies& copies) {
        for (int rank = 0; rank < group.size(); ++rank) {
          const std::size_t part = static_cast<std::size_t>(rank) * part_bytes + piece.begin;
          const std::size_t mine = static_cast<std::size_t>(group.rank()) * piece.size;
          copies.add(out + part, rank == group.rank() ? in + part : group.large(rank, piece.place) + mine,
                     piece.size);
        }
      });
}

}  // namespace weft::queued
