#include "rma/copy/run.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"

namespace weft::rma {

using base::Error;
using base::StatusCode;

namespace {

// Joins the run with the one before if they adjoin on both sides.
void append_run(std::vector<Run>& runs, const Run& run) {
  if (!runs.empty()) {
    Run& last = runs.back();
    // Where the last run ends, and the size of both, if they are numbers at all: what leaves every segment is refused later.
    std::int64_t from_end = 0;
    std::int64_t to_end = 0;
    std::uint64_t joined_bytes = 0;
    const bool have_ends = !__builtin_add_overflow(last.from_bytes, last.size_bytes, &from_end) &&
                           !__builtin_add_overflow(last.to_bytes, last.size_bytes, &to_end) &&
                           !__builtin_add_overflow(last.size_bytes, run.size_bytes, &joined_bytes);
    if (have_ends && from_end == run.from_bytes && to_end == run.to_bytes) {
      last.size_bytes = joined_bytes;
      return;
    }
  }
  runs.push_back(run);
}

[[noreturn]] void refuse_shape(std::string_view what) {
  throw Error(StatusCode::kInvalidArgument, base::format("a strided or indexed copy cannot start: {}", what));
}

std::int64_t scaled(std::ptrdiff_t index, std::size_t element_bytes) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(index, static_cast<std::int64_t>(element_bytes), &bytes)) {
    refuse_shape(base::format("index {} is outside of every segment", index));
  }
  return bytes;
}

}  // namespace

std::vector<Run> runs_of(std::span<const std::ptrdiff_t> from_strides,
                         std::span<const std::ptrdiff_t> to_strides, std::span<const std::size_t> extents,
                         std::size_t element_bytes) {
  if (from_strides.size() != extents.size() || to_strides.size() != extents.size()) {
    refuse_shape(base::format("it has {} and {} strides, and {} extents", from_strides.size(),
                              to_strides.size(), extents.size()));
  }
  if (extents.size() > kMostDimensions)
    refuse_shape(base::format("it has {} dimensions; the most are {}", extents.size(), kMostDimensions));
  if (std::ranges::find(extents, std::size_t{0}) != extents.end()) return {};
  // The last dimensions that both ends hold without gaps are one block.
  std::size_t block_bytes = element_bytes;
  for (; !extents.empty(); extents = extents.first(extents.size() - 1)) {
    const std::size_t last = extents.size() - 1;
    const auto block = static_cast<std::ptrdiff_t>(block_bytes);
    if (extents[last] != 1 && (from_strides[last] != block || to_strides[last] != block)) break;
    if (extents[last] > kMostSegmentBytes / std::max(block_bytes, std::size_t{1}))
      refuse_shape("its elements are more than every segment has");
    block_bytes *= extents[last];
  }
  std::size_t count = 1;
  for (const std::size_t extent : extents) {
    if (extent > kMostRuns || count > kMostRuns / extent) refuse_shape("it has more than 2^28 blocks");
    count *= extent;
  }
  std::vector<Run> runs;
  runs.reserve(count);
  std::vector<std::size_t> index(extents.size(), 0);
  Run next{.from_bytes = 0, .to_bytes = 0, .size_bytes = block_bytes};
  for (std::size_t element = 0; element < count; ++element) {
    append_run(runs, next);
    // The last dimension moves fastest. Offsets wrap, and then lie outside of the segment.
    for (std::size_t d = extents.size(); d-- > 0;) {
      const bool is_over = ++index[d] == extents[d];
      const auto steps = is_over ? -static_cast<std::int64_t>(extents[d] - 1) : 1;
      if (is_over) index[d] = 0;
      next.from_bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(next.from_bytes) +
                                                  static_cast<std::uint64_t>(from_strides[d]) *
                                                      static_cast<std::uint64_t>(steps));
      next.to_bytes = static_cast<std::int64_t>(static_cast<std::uint64_t>(next.to_bytes) +
                                                static_cast<std::uint64_t>(to_strides[d]) *
                                                    static_cast<std::uint64_t>(steps));
      if (!is_over) break;
    }
  }
  return runs;
}

std::vector<Run> runs_of_indices(std::span<const std::ptrdiff_t> from_index,
                                 std::span<const std::ptrdiff_t> to_index, std::size_t element_bytes,
                                 std::size_t block) {
  if (from_index.size() != to_index.size()) {
    refuse_shape(base::format("it has {} indices of the source and {} of the target", from_index.size(),
                              to_index.size()));
  }
  if (block == 0 || element_bytes == 0) return {};
  if (block > kMostSegmentBytes / element_bytes)
    refuse_shape(base::format("blocks of {} elements of {} bytes are larger than every segment", block,
                              element_bytes));
  std::vector<Run> runs;
  runs.reserve(from_index.size());
  for (std::size_t i = 0; i < from_index.size(); ++i) {
    append_run(runs, {scaled(from_index[i], element_bytes), scaled(to_index[i], element_bytes),
                      element_bytes * block});
  }
  return runs;
}

Reach reach_of(std::span<const std::ptrdiff_t> strides, std::span<const std::size_t> extents,
               std::size_t element_bytes) {
  std::int64_t first = 0;
  std::int64_t last = 0;  // the first byte of the last element
  std::uint64_t size_bytes = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return {};
    std::int64_t distance = 0;
    std::int64_t& moved = strides[d] < 0 ? first : last;
    if (__builtin_mul_overflow(strides[d], extents[d] - 1, &distance) ||
        __builtin_add_overflow(moved, distance, &moved)) {
      throw Error(StatusCode::kOutOfRange, "a strided copy reaches further than an address space");
    }
  }
  if (__builtin_add_overflow(static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(first),
                             element_bytes, &size_bytes)) {
    throw Error(StatusCode::kOutOfRange, "a strided copy reaches further than an address space");
  }
  return {first, size_bytes};
}

std::uint64_t total_bytes(std::span<const Run> runs) {
  std::uint64_t total = 0;
  for (const Run& run : runs) {
    if (__builtin_add_overflow(total, run.size_bytes, &total))
      return std::numeric_limits<std::uint64_t>::max();
  }
  return total;
}

std::size_t num_joined(std::span<const Run> runs, End end) {
  const auto begin_of = [&](const Run& run) {
    return static_cast<std::uint64_t>(end == End::kSource ? run.from_bytes : run.to_bytes);
  };
  std::size_t count = runs.empty() ? 0 : 1;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (begin_of(runs[i - 1]) + runs[i - 1].size_bytes != begin_of(runs[i])) ++count;
  }
  return count;
}

std::span<const Run> take_piece(std::span<const Run>& left) {
  std::size_t count = 1;
  for (std::uint64_t bytes = left.front().size_bytes; count < left.size(); ++count) {
    if (bytes > kAtOnceBytes || left[count].size_bytes > kAtOnceBytes - bytes) break;
    bytes += left[count].size_bytes;
  }
  const std::span<const Run> piece = left.first(count);
  left = left.subspan(count);
  return piece;
}

bool have_overlap(std::span<ByteRange> ranges) {
  std::ranges::sort(ranges, [](const ByteRange& a, const ByteRange& b) {
    return a.space != b.space ? a.space < b.space : a.begin < b.begin;
  });
  // The furthest ends so far in this space, of source and target.
  std::uint64_t space = 0;
  std::uint64_t ends[2] = {0, 0};
  for (const ByteRange& range : ranges) {
    if (range.begin == range.end) continue;
    if (range.space != space) {
      space = range.space;
      ends[0] = ends[1] = 0;
    }
    if (range.begin < ends[range.is_target ? 0 : 1]) return true;
    std::uint64_t& own_end = ends[range.is_target ? 1 : 0];
    own_end = std::max(own_end, range.end);
  }
  return false;
}

bool overlaps(std::span<const Run> runs, std::uint64_t from, std::uint64_t to) {
  // Most copies are far apart, or have one run.
  std::uint64_t firsts[2] = {std::numeric_limits<std::uint64_t>::max(),
                             std::numeric_limits<std::uint64_t>::max()};
  std::uint64_t lasts[2] = {0, 0};
  for (const Run& run : runs) {
    const std::uint64_t begins[2] = {from + static_cast<std::uint64_t>(run.from_bytes),
                                     to + static_cast<std::uint64_t>(run.to_bytes)};
    for (const int end : {0, 1}) {
      firsts[end] = std::min(firsts[end], begins[end]);
      lasts[end] = std::max(lasts[end], begins[end] + run.size_bytes);
    }
  }
  if (firsts[0] >= lasts[1] || firsts[1] >= lasts[0]) return false;
  if (runs.size() == 1) return true;
  std::vector<ByteRange> ranges;
  ranges.reserve(2 * runs.size());
  for (const Run& run : runs) {
    const std::uint64_t source = from + static_cast<std::uint64_t>(run.from_bytes);
    const std::uint64_t target = to + static_cast<std::uint64_t>(run.to_bytes);
    ranges.push_back({0, source, source + run.size_bytes, false});
    ranges.push_back({0, target, target + run.size_bytes, true});
  }
  return have_overlap(ranges);
}

std::vector<RowGroup> row_groups(std::span<const Run> runs) {
  std::vector<RowGroup> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!groups.empty() && runs[i].size_bytes == runs[i - 1].size_bytes) {
      RowGroup& group = groups.back();
      const std::int64_t from_stride = runs[i].from_bytes - runs[i - 1].from_bytes;
      const std::int64_t to_stride = runs[i].to_bytes - runs[i - 1].to_bytes;
      if (group.count == 1) {
        group.from_stride = from_stride;
        group.to_stride = to_stride;
      }
      if (group.from_stride == from_stride && group.to_stride == to_stride) {
        ++group.count;
        continue;
      }
    }
    groups.push_back({.first = i, .count = 1, .from_stride = 0, .to_stride = 0});
  }
  return groups;
}

std::vector<Run> packing_runs(std::span<const Run> runs) {
  std::vector<Run> packing;
  std::int64_t offset = 0;
  for (const Run& run : runs) {
    append_run(packing, {run.from_bytes, offset, run.size_bytes});
    offset += static_cast<std::int64_t>(run.size_bytes);
  }
  return packing;
}

std::vector<Run> unpacking_runs(std::span<const Run> runs) {
  std::vector<Run> unpacking;
  std::int64_t offset = 0;
  for (const Run& run : runs) {
    append_run(unpacking, {offset, run.to_bytes, run.size_bytes});
    offset += static_cast<std::int64_t>(run.size_bytes);
  }
  return unpacking;
}

}  // namespace weft::rma
