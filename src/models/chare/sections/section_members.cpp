#include "weft/chare/section_members.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chares.h"

#include "base/format.h"
#include "models/chare/sections/section_hash.h"

namespace weft::chare {

namespace {

using base::Error;
using base::StatusCode;

void expect_not_sparse(const Collection& collection, const char* how) {
  if (!collection.is_sparse()) return;
  throw Error(
      StatusCode::kInvalidArgument,
      base::format("a section of {}, a sparse array, cannot be made {}: no PE knows which elements it "
                   "has; list their indices",
                   collection.name(), how));
}

}  // namespace

namespace section_detail {

void throw_no_member(std::uint64_t place, std::uint64_t size) {
  throw Error(
      StatusCode::kOutOfRange,
      base::format("place {} is outside of a section of {} members; places count from 0", place, size));
}

void expect_slice(std::uint64_t first, std::uint64_t end, std::uint64_t step, std::uint64_t size) {
  if (first > end || end > size) {
    throw Error(StatusCode::kOutOfRange,
                base::format("the places from {} up to {} are no slice of a section of {} members", first,
                             end, size));
  }
  if (step == 0)
    throw Error(StatusCode::kInvalidArgument, "the step of a section's slice is 0; it is at least 1");
}

void expect_collection(const Collection* collection) {
  if (collection != nullptr) return;
  throw Error(StatusCode::kInvalidArgument,
              "a section of no collection has been used: it was made by the default constructor; assign a "
              "section to it before, such as array.slice(...)");
}

void expect_same(const Collection& a, const Collection& b) {
  if (&a == &b) return;
  throw Error(
      StatusCode::kInvalidArgument,
      base::format("sections of two collections, {} and {}, cannot be combined to one section: make a "
                   "CombinedSection of them",
                   a.name(), b.name()));
}

}  // namespace section_detail

// --- Making sections

SectionMembers::Pointer SectionMembers::of_list(const Collection& collection,
                                                std::vector<std::uint64_t> members) {
  const std::uint64_t size = collection.shape().size();
  for (const std::uint64_t one : members) {
    if (one < size) continue;
    throw Error(StatusCode::kOutOfRange, base::format("element {} is outside {} of shape {}", one,
                                                      collection.name(), collection.shape().to_string()));
  }
  std::shared_ptr<SectionMembers> made(new SectionMembers);
  if (const auto twice = made->set_list(std::move(members))) {
    throw Error(StatusCode::kInvalidArgument,
                base::format("{} is in the list of a section's members twice; a member gets each call once",
                             collection.element_name(*twice)));
  }
  return made;
}

SectionMembers::Pointer SectionMembers::of_ranges(const Collection& collection,
                                                  std::span<const Range> ranges) {
  expect_not_sparse(collection, "from ranges");
  const Shape& shape = collection.shape();
  if (static_cast<int>(ranges.size()) != shape.num_dimensions()) {
    throw Error(StatusCode::kInvalidArgument,
                base::format("a section of {} needs one range for each of its {} dimensions, not {}",
                             collection.name(), shape.num_dimensions(), ranges.size()));
  }
  std::vector<Range> resolved(ranges.begin(), ranges.end());
  for (int d = 0; d < shape.num_dimensions(); ++d) {
    Range& one = resolved[static_cast<std::size_t>(d)];
    if (one == Range::all()) one.count = shape.extent(d);
    if (one.step == 0)
      throw Error(StatusCode::kInvalidArgument,
                  "the step of a section's range is 0; it is at least 1, or at most -1");
  }
  if (!fits(shape, resolved)) {
    throw Error(StatusCode::kOutOfRange, base::format("a range of a section is outside {} of shape {}",
                                                      collection.name(), shape.to_string()));
  }
  std::shared_ptr<SectionMembers> made(new SectionMembers);
  made->set_ranges(shape, std::move(resolved));
  return made;
}

SectionMembers::Pointer SectionMembers::of_function(const Collection& collection,
                                                    const std::function<bool(const Index&)>& accepts) {
  expect_not_sparse(collection, "by a function");
  std::vector<std::uint64_t> chosen;
  for (std::uint64_t i = 0; i < collection.shape().size(); ++i) {
    if (accepts(collection.shape().index(i))) chosen.push_back(i);
  }
  return of_list(collection, std::move(chosen));
}

SectionMembers::Pointer SectionMembers::combined(const Collection& collection,
                                                 std::span<const Pointer> sections) {
  std::unordered_set<std::uint64_t> known;
  std::vector<std::uint64_t> all;
  for (const Pointer& one : sections) {
    for (std::uint64_t i = 0; i < one->size(); ++i) {
      if (known.insert(one->at(i)).second) all.push_back(one->at(i));
    }
  }
  return of_list(collection, std::move(all));
}

SectionMembers::Pointer SectionMembers::select(const Collection& collection, std::uint64_t first,
                                               std::uint64_t count, std::int64_t step) const {
  std::shared_ptr<SectionMembers> made(new SectionMembers);
  const auto is_long = [](const Range& range) { return range.count > 1; };
  if (!is_list_ && count != 0 && std::ranges::count_if(ranges_, is_long) <= 1) {
    std::vector<Range> ranges = ranges_;
    for (Range& range : ranges) {
      if (!is_long(range)) continue;
      range.first += static_cast<int>(first) * range.step;
      range.count = static_cast<int>(count);
      range.step = count == 1 ? 1 : range.step * static_cast<int>(step);
    }
    made->set_ranges(collection.shape(), std::move(ranges));
    return made;
  }
  std::vector<std::uint64_t> chosen;
  chosen.reserve(count);
  for (std::uint64_t k = 0; k < count; ++k) {
    chosen.push_back(at(
        static_cast<std::uint64_t>(static_cast<std::int64_t>(first) + static_cast<std::int64_t>(k) * step)));
  }
  static_cast<void>(made->set_list(std::move(chosen)));
  return made;
}

std::vector<SectionMembers::Pointer> SectionMembers::split(const Collection& collection, int parts) const {
  if (parts < 1) {
    throw Error(StatusCode::kInvalidArgument,
                base::format("a section is split into at least 1 part, not {}", parts));
  }
  std::vector<Pointer> sections;
  const auto number = static_cast<std::uint64_t>(parts);
  std::uint64_t first = 0;
  for (std::uint64_t part = 0; part < number; ++part) {
    const std::uint64_t count = size_ / number + (part < size_ % number ? 1 : 0);
    sections.push_back(select(collection, first, count));
    first += count;
  }
  return sections;
}

bool SectionMembers::fits(const Shape& shape, std::span<const Range> ranges) {
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const Range& range = ranges[d];
    const std::int64_t extent = shape.extent(static_cast<int>(d));
    if (range.step == 0 || range.count < 0) return false;
    if (range.count == 0) continue;
    const std::int64_t last = range.first + std::int64_t{range.count - 1} * range.step;
    if (range.first < 0 || range.first >= extent || last < 0 || last >= extent) return false;
  }
  return true;
}

void SectionMembers::set_ranges(const Shape& shape, std::vector<Range> ranges) {
  is_list_ = false;
  ranges_ = std::move(ranges);
  extents_.resize(ranges_.size());
  size_ = 1;
  for (std::size_t d = 0; d < ranges_.size(); ++d) {
    extents_[d] = static_cast<std::uint64_t>(shape.extent(static_cast<int>(d)));
    size_ *= static_cast<std::uint64_t>(ranges_[d].count);
  }
}

std::optional<std::uint64_t> SectionMembers::set_list(std::vector<std::uint64_t> list) {
  list_ = std::move(list);
  size_ = list_.size();
  if (std::ranges::adjacent_find(list_, std::greater_equal<>()) == list_.end()) return std::nullopt;
  sorted_.resize(list_.size());
  std::iota(sorted_.begin(), sorted_.end(), std::uint64_t{0});
  std::ranges::sort(sorted_, {}, [this](std::uint64_t place) { return list_[place]; });
  const auto twice =
      std::ranges::adjacent_find(sorted_, {}, [this](std::uint64_t place) { return list_[place]; });
  return twice == sorted_.end() ? std::nullopt : std::optional(list_[*twice]);
}

// --- Members

std::uint64_t SectionMembers::at(std::uint64_t i) const {
  if (is_list_) return list_[i];
  std::uint64_t linear = 0;
  std::uint64_t stride = 1;
  for (std::size_t d = ranges_.size(); d-- > 0;) {
    const auto count = static_cast<std::uint64_t>(ranges_[d].count);
    const std::int64_t coordinate = ranges_[d].first + static_cast<std::int64_t>(i % count) * ranges_[d].step;
    linear += static_cast<std::uint64_t>(coordinate) * stride;
    stride *= extents_[d];
    i /= count;
  }
  return linear;
}

std::optional<std::uint64_t> SectionMembers::position(std::uint64_t linear_index) const {
  if (is_list_ && sorted_.empty()) {
    const auto found = std::ranges::lower_bound(list_, linear_index);
    if (found == list_.end() || *found != linear_index) return std::nullopt;
    return static_cast<std::uint64_t>(found - list_.begin());
  }
  if (is_list_) {
    const auto found = std::ranges::lower_bound(sorted_, linear_index, {},
                                                [this](std::uint64_t place) { return list_[place]; });
    if (found == sorted_.end() || list_[*found] != linear_index) return std::nullopt;
    return *found;
  }
  std::uint64_t place = 0;
  std::uint64_t stride = 1;
  for (std::size_t d = ranges_.size(); d-- > 0;) {
    const auto coordinate = static_cast<std::int64_t>(linear_index % extents_[d]);
    linear_index /= extents_[d];
    const std::int64_t distance = coordinate - ranges_[d].first;
    const std::int64_t step = distance / ranges_[d].step;
    if (distance % ranges_[d].step != 0 || step < 0 || step >= ranges_[d].count) return std::nullopt;
    place += static_cast<std::uint64_t>(step) * stride;
    stride *= static_cast<std::uint64_t>(ranges_[d].count);
  }
  return linear_index == 0 ? std::optional(place) : std::nullopt;
}

std::vector<std::uint64_t> SectionMembers::places_by_index() const {
  if (is_list_) return sorted_;
  const auto turns_back = [](const Range& range) { return range.count > 1 && range.step < 0; };
  if (std::ranges::none_of(ranges_, turns_back)) return {};
  std::vector<std::uint64_t> places(size_);
  std::iota(places.begin(), places.end(), std::uint64_t{0});
  std::ranges::sort(places, {}, [this](std::uint64_t place) { return at(place); });
  return places;
}

const SectionId& SectionMembers::id() const {
  if (id_.has_value()) return *id_;
  SectionId id{section_detail::mixed(size_), section_detail::mixed(size_ + 0x9e3779b97f4a7c15)};
  for (std::uint64_t i = 0; i < size_; ++i) {
    const std::uint64_t member = at(i);
    id.high = section_detail::mixed(id.high + member + 0x9e3779b97f4a7c15);
    id.low = section_detail::mixed((id.low ^ member) + 0xd1b54a32d192ed03);
  }
  return id_.emplace(id);
}

// --- Travelling

void SectionMembers::pack(Pup& p) const {
  p | is_list_;
  if (is_list_) {
    p | list_;
  } else {
    p | ranges_;
  }
}

SectionMembers::Pointer SectionMembers::unpack(Pup& p, const Collection& collection) {
  std::shared_ptr<SectionMembers> made(new SectionMembers);
  p | made->is_list_;
  if (!made->is_list_) {
    std::vector<Range> ranges;
    p | ranges;
    if (collection.is_sparse() || static_cast<int>(ranges.size()) != collection.shape().num_dimensions() ||
        !fits(collection.shape(), ranges)) {
      p.refuse("a section whose ranges do not fit its collection");
    }
    made->set_ranges(collection.shape(), std::move(ranges));
    return made;
  }
  std::vector<std::uint64_t> list;
  p | list;
  const std::uint64_t size = collection.shape().size();
  if (std::ranges::any_of(list, [size](std::uint64_t one) { return one >= size; }) ||
      made->set_list(std::move(list)).has_value()) {
    p.refuse("a section whose members do not fit its collection");
  }
  return made;
}

bool SectionMembers::skip_packed(Pup& p) const {
  const auto is_next = [this, &p](const auto& elements) {
    const std::uint64_t count = elements.size();
    const std::size_t elements_bytes = count * sizeof elements[0];
    const std::size_t size_bytes = sizeof is_list_ + sizeof count + elements_bytes;
    const std::byte* at = p.cursor();
    if (p.remaining_bytes() < size_bytes || std::memcmp(at, &is_list_, sizeof is_list_) != 0 ||
        std::memcmp(at + sizeof is_list_, &count, sizeof count) != 0 ||
        (count != 0 &&
         std::memcmp(at + sizeof is_list_ + sizeof count, elements.data(), elements_bytes) != 0)) {
      return false;
    }
    p.skip(size_bytes);
    return true;
  };
  return is_list_ ? is_next(list_) : is_next(ranges_);
}

}  // namespace weft::chare
