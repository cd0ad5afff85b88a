// The members of a combined section: sections of one or several collections, one behind the other. A value without user types,
// for C++ and Python.
//
// An element has one place: what a part names again is left out of it. Empty parts are left out, and neighbouring parts of one
// collection become one. So combined sections with the same members in the same order are the same, wherever and of whatever
// parts they were made; only if there is no member, the first empty part stays. Threads: one PE's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/section_members.h"

namespace weft::chare {

class CombinedMembers {
 public:
  using Pointer = std::shared_ptr<const CombinedMembers>;
  struct Part {
    Collection* collection = nullptr;
    SectionMembers::Pointer members;
    std::uint64_t first = 0;  // the place of its first member
  };
  struct Member {
    std::size_t part = 0;
    Collection* collection = nullptr;
    std::uint64_t linear_index = 0;
  };

  // Adds those members that are not there yet.
  void add(Collection& collection, SectionMembers::Pointer members);
  // All elements. Throws Error(kInvalidArgument) for a sparse array.
  void add_all(Collection& collection);
  void add(const CombinedMembers& other);

  std::span<const Part> parts() const { return parts_; }
  std::uint64_t size() const { return size_; }
  // Throws Error(kOutOfRange).
  Member at(std::uint64_t place) const;
  // The place of that element; nothing if it is no member.
  std::optional<std::uint64_t> position(const Collection& collection, std::uint64_t linear_index) const;
  // Also if the collections do not exist any more.
  friend bool operator==(const CombinedMembers& a, const CombinedMembers& b);
  // The identity: a hash of the collections and of `sections`, the identities of the parts. This object remembers it.
  SectionId id(std::span<const SectionId> sections) const;
  const std::optional<SectionId>& known_id() const { return id_; }
  // The numbers of the collections of all parts but the first, each once.
  std::vector<std::uint64_t> other_collections() const;

  // Throws Error(kCorrupt) unless the parts fit.
  static Pointer unpack(Pup& p);
  void pack(Pup& p) const;

 private:
  bool has_part_of(const Collection& collection) const;

  std::vector<Part> parts_;
  std::uint64_t size_ = 0;
  mutable std::optional<SectionId> id_;
};

namespace section_detail {
// Throws Error(kInvalidArgument) for null: a combined section without parts.
void expect_parts(const CombinedMembers* members);
}  // namespace section_detail

}  // namespace weft::chare
