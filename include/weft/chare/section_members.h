// The members of a section: some elements of one collection, in an order. A value without user types, for C++ and Python.
//
// Members are named by their index alone, so a section stays valid when they move. No element is in a section twice. The
// members are ranges of indices, if they were chosen so, or a list. Sections with the same members in the same order are the
// same section, wherever they were made: their identity is a hash of the members. Threads: one PE's thread.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/index.h"

namespace weft::chare {

class Collection;

// Coordinates of one dimension: first, first + step, ..., `count` of them. `step` may be negative.
struct Range {
  int first = 0;
  int count = 0;
  int step = 1;

  // All coordinates of the dimension, whatever its extent.
  static Range all() { return {0, kAll, 1}; }
  // One coordinate.
  static Range one(int coordinate) { return {coordinate, 1, 1}; }
  // From `first` up to, and without, `end`; down to `end` if the step is negative.
  static Range between(int first, int end, int step = 1) {
    if (step == 0) return {first, 0, 0};  // SectionMembers::of_ranges() refuses it
    const std::int64_t distance = step > 0 ? std::int64_t{end} - first : std::int64_t{first} - end;
    const std::int64_t size = step > 0 ? std::int64_t{step} : -std::int64_t{step};
    const std::int64_t count = distance <= 0 ? 0 : (distance - 1) / size + 1;
    // A range of 2^32 coordinates does not fit any shape.
    return {first, static_cast<int>(std::min<std::int64_t>(count, std::numeric_limits<int>::max())), step};
  }

  static constexpr int kAll = -1;
  friend bool operator==(const Range&, const Range&) = default;
};

// 128 bits of hash.
struct SectionId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const SectionId&, const SectionId&) = default;
  friend auto operator<=>(const SectionId&, const SectionId&) = default;
};

class SectionMembers {
 public:
  using Pointer = std::shared_ptr<const SectionMembers>;

  // The elements with these positions in the row-major order of the collection. Throws Error(kOutOfRange) for one outside of
  // its shape, Error(kInvalidArgument) for one that is there twice.
  static Pointer of_list(const Collection& collection, std::vector<std::uint64_t> members);
  // One range for each dimension, in row-major order of the ranges. Throws Error(kInvalidArgument) for another number of
  // ranges or a step of 0, and for a sparse array; Error(kOutOfRange) for coordinates outside of the shape.
  static Pointer of_ranges(const Collection& collection, std::span<const Range> ranges);
  // The elements that the function accepts, in row-major order. Throws Error(kInvalidArgument) for a sparse array, because no
  // PE knows its elements.
  static Pointer of_function(const Collection& collection, const std::function<bool(const Index&)>& accepts);
  // Those of `first`, then those of the others that are not there yet.
  static Pointer combined(const Collection& collection, std::span<const Pointer> sections);

  // The members of this section at the positions first, first + step, .... REQUIRES: they exist; step is not 0.
  Pointer select(const Collection& collection, std::uint64_t first, std::uint64_t count,
                 std::int64_t step = 1) const;
  // `parts` sections of successive members, whose sizes differ by one at most. Throws Error(kInvalidArgument) for parts < 1.
  std::vector<Pointer> split(const Collection& collection, int parts) const;

  std::uint64_t size() const { return size_; }
  // The position in the row-major order of the collection. REQUIRES: i < size().
  std::uint64_t at(std::uint64_t i) const;
  // The place of that element in the section; nothing if it is no member.
  std::optional<std::uint64_t> position(std::uint64_t linear_index) const;
  // The places of the members in the section, by ascending linear index. Empty if they are in this order already.
  std::vector<std::uint64_t> places_by_index() const;
  // An id of the members alone; a section is identified by its collection and this. Costs a step for each member, once for this object.
  const SectionId& id() const;
  bool has_id() const { return id_.has_value(); }
  // REQUIRES: `equal` has the same members.
  void take_id(const SectionMembers& equal) const { id_ = equal.id_; }
  // Whether the other has the same ranges, or the same list.
  bool is_like(const SectionMembers& other) const {
    return is_list_ == other.is_list_ && ranges_ == other.ranges_ && list_ == other.list_;
  }

  // Throws Error(kCorrupt) unless the members fit the collection.
  static Pointer unpack(Pup& p, const Collection& collection);
  void pack(Pup& p) const;
  // Whether the bytes that `p` reads next are those of this section. If so, skips them.
  bool skip_packed(Pup& p) const;

 private:
  SectionMembers() = default;
  static bool fits(const Shape& shape, std::span<const Range> ranges);
  void set_ranges(const Shape& shape, std::vector<Range> ranges);
  // Returns an element that is in the list twice.
  std::optional<std::uint64_t> set_list(std::vector<std::uint64_t> list);

  std::uint64_t size_ = 0;
  bool is_list_ = true;
  std::vector<Range> ranges_;           // one for each dimension
  std::vector<std::uint64_t> extents_;  // of the dimensions
  std::vector<std::uint64_t> list_;
  // The places of a list's members by ascending linear index; empty if the list is ascending.
  std::vector<std::uint64_t> sorted_;
  mutable std::optional<SectionId> id_;
};

namespace section_detail {
[[noreturn]] void throw_no_member(std::uint64_t place, std::uint64_t size);
// Throws Error(kOutOfRange) unless first <= end <= size; Error(kInvalidArgument) for a step of 0.
void expect_slice(std::uint64_t first, std::uint64_t end, std::uint64_t step, std::uint64_t size);
// Throws Error(kInvalidArgument) for null: a section that was made by its default constructor.
void expect_collection(const Collection* collection);
// Throws Error(kInvalidArgument) for two collections.
void expect_same(const Collection& a, const Collection& b);
}  // namespace section_detail

}  // namespace weft::chare
