// The bytes of a copy: runs, each at an offset from the copy's source and from its target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/rma/limits.h"

namespace weft::rma {

struct Run {
  std::int64_t from_bytes = 0;
  std::int64_t to_bytes = 0;
  std::uint64_t size_bytes = 0;
};

// The runs of a strided copy; runs that adjoin on both sides are joined. Throws Error for extents, strides and dimensions
// that do not fit together, or if there are more than kMostRuns.
inline constexpr std::size_t kMostRuns = std::size_t{1} << 28;
std::vector<Run> runs_of(std::span<const std::ptrdiff_t> from_strides,
                         std::span<const std::ptrdiff_t> to_strides, std::span<const std::size_t> extents,
                         std::size_t element_bytes);
std::vector<Run> runs_of_indices(std::span<const std::ptrdiff_t> from_index,
                                 std::span<const std::ptrdiff_t> to_index, std::size_t element_bytes,
                                 std::size_t block);

// All bytes of a strided end, from its first to its last: as an offset from its address, and a size. Empty if an extent is 0.
// Throws Error if they do not fit into an address space. REQUIRES: as many strides as extents.
struct Reach {
  std::int64_t first_bytes = 0;
  std::uint64_t size_bytes = 0;
};
Reach reach_of(std::span<const std::ptrdiff_t> strides, std::span<const std::size_t> extents,
               std::size_t element_bytes);

// The largest number if the sum is no number.
std::uint64_t total_bytes(std::span<const Run> runs);

// Bytes that a copy reads or writes. Numbers of different spaces are of different memory.
struct ByteRange {
  std::uint64_t space = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool is_target = false;
};
// Whether a byte of a source is also one of a target. Changes the order of the ranges.
bool have_overlap(std::span<ByteRange> ranges);

// Whether a byte of the source is also one of the target. `from` and `to`: numbers of the first bytes, in one segment or in this
// PE's memory. REQUIRES: no run leaves the memory.
bool overlaps(std::span<const Run> runs, std::uint64_t from, std::uint64_t to);

// Runs that follow one another with equal sizes and equal distances. A run of its own is a group without distances.
struct RowGroup {
  std::size_t first = 0;
  std::size_t count = 1;
  std::int64_t from_stride = 0;
  std::int64_t to_stride = 0;
};
std::vector<RowGroup> row_groups(std::span<const Run> runs);

// How many runs are left if those that adjoin at one end are joined.
enum class End : std::uint8_t { kSource, kTarget };
std::size_t num_joined(std::span<const Run> runs, End end);

// The first of those runs, up to kAtOnceBytes or one run, which are taken from `left`. REQUIRES: there is one.
std::span<const Run> take_piece(std::span<const Run>& left);

// The runs from the source into a dense block, and from such a block to the target. One run: that end is dense.
std::vector<Run> packing_runs(std::span<const Run> runs);
std::vector<Run> unpacking_runs(std::span<const Run> runs);

}  // namespace weft::rma
