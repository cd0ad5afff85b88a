#include "weft/chare/combined_members.h"

#include <algorithm>
#include <utility>

#include "weft/base/error.h"
#include "weft/chare/chares.h"
#include "weft/chare/sections.h"

#include "base/format.h"
#include "models/chare/sections/section_hash.h"

namespace weft::chare {

namespace section_detail {

void expect_parts(const CombinedMembers* members) {
  if (members != nullptr) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      "a combined section without parts has been used: it was made by the default constructor or "
      "of an empty list; assign one to it before, such as CombinedSection(first, second)");
}

}  // namespace section_detail

bool CombinedMembers::has_part_of(const Collection& collection) const {
  return std::ranges::any_of(parts_, [&](const Part& part) { return part.collection == &collection; });
}

void CombinedMembers::add(Collection& collection, SectionMembers::Pointer members) {
  id_.reset();
  if (has_part_of(collection)) {
    std::vector<std::uint64_t> fresh;
    for (std::uint64_t i = 0; i < members->size(); ++i) {
      if (!position(collection, members->at(i)).has_value()) fresh.push_back(members->at(i));
    }
    if (fresh.size() != members->size()) members = SectionMembers::of_list(collection, std::move(fresh));
  }
  const std::uint64_t added = members->size();
  if (added == 0 && !parts_.empty()) return;
  if (size_ == 0) parts_.clear();
  if (!parts_.empty() && parts_.back().collection == &collection) {
    const SectionMembers::Pointer both[] = {parts_.back().members, std::move(members)};
    parts_.back().members = SectionMembers::combined(collection, both);
  } else {
    parts_.push_back({&collection, std::move(members), size_});
  }
  size_ += added;
}

void CombinedMembers::add_all(Collection& collection) {
  const std::vector<Range> all(static_cast<std::size_t>(collection.shape().num_dimensions()), Range::all());
  add(collection, SectionMembers::of_ranges(collection, all));
}

void CombinedMembers::add(const CombinedMembers& other) {
  for (const Part& part : std::vector<Part>(other.parts_)) add(*part.collection, part.members);
}

CombinedMembers::Member CombinedMembers::at(std::uint64_t place) const {
  if (place >= size_) section_detail::throw_no_member(place, size_);
  // The last part that begins at or before the place.
  const auto behind =
      std::ranges::upper_bound(parts_, place, {}, [](const Part& part) { return part.first; });
  const Part& part = *std::prev(behind);
  return {static_cast<std::size_t>(&part - parts_.data()), part.collection,
          part.members->at(place - part.first)};
}

std::optional<std::uint64_t> CombinedMembers::position(const Collection& collection,
                                                       std::uint64_t linear_index) const {
  for (const Part& part : parts_) {
    if (part.collection != &collection) continue;
    if (const auto place = part.members->position(linear_index)) return part.first + *place;
  }
  return std::nullopt;
}

bool operator==(const CombinedMembers& a, const CombinedMembers& b) {
  return std::ranges::equal(
      a.parts_, b.parts_, [](const CombinedMembers::Part& one, const CombinedMembers::Part& other) {
        return one.collection == other.collection && one.members->size() == other.members->size() &&
               one.members->id() == other.members->id();
      });
}

SectionId CombinedMembers::id(std::span<const SectionId> sections) const {
  SectionId id{0x243f6a8885a308d3, 0x13198a2e03707344};
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (const std::uint64_t word : {parts_[i].collection->id(), sections[i].high, sections[i].low}) {
      id.high = section_detail::mixed(id.high + word + 0x9e3779b97f4a7c15);
      id.low = section_detail::mixed((id.low ^ word) + 0xd1b54a32d192ed03);
    }
  }
  return id_.emplace(id);
}

std::vector<std::uint64_t> CombinedMembers::other_collections() const {
  std::vector<std::uint64_t> others;
  for (const Part& part : parts_) {
    const std::uint64_t id = part.collection->id();
    if (id != parts_.front().collection->id() && std::ranges::find(others, id) == others.end())
      others.push_back(id);
  }
  return others;
}

void CombinedMembers::pack(Pup& p) const {
  static_cast<void>(p.count(parts_.size(), 0));
  for (Part part : parts_) pup_section(p, part.collection, part.members);
}

CombinedMembers::Pointer CombinedMembers::unpack(Pup& p) {
  // Each part takes the bytes of its collection's number at least.
  const std::uint64_t count = p.count(0, sizeof(std::uint64_t));
  if (count == 0) p.refuse("a combined section without parts");
  auto made = std::make_shared<CombinedMembers>();
  for (std::uint64_t i = 0; i < count; ++i) {
    Part part;
    pup_section(p, part.collection, part.members);
    if (part.collection == nullptr) p.refuse("a combined section with a part of no collection");
    const std::uint64_t size = made->size_ + part.members->size();
    made->add(*part.collection, std::move(part.members));
    // An element has two places, a part is empty, or neighbouring parts are of one collection.
    if (made->size_ != size || made->parts_.size() != i + 1)
      p.refuse("a combined section whose parts do not fit together");
  }
  return made;
}

}  // namespace weft::chare
