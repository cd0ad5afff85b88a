// The state of reductions over sections on a PE.
//
// As a PE with members: how many reductions each element has contributed to, and the contributions of this turn, merged. As the
// PE that counts a section's contributions: the reductions that are not complete, and which ones are.
// Threads: one PE's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/chare/combined_members.h"
#include "weft/chare/sections.h"

#include "runtime/collective/partial.h"
#include "runtime/owned_work.h"

namespace weft::chare {

// Offsets from Sections::first_handler().
enum SectionHandler : runtime::HandlerId { kSectionCall, kSectionTarget, kSectionPart, kCombinedTarget };

// One section, and of a sparse array one set of counted elements: its reductions are numbered from 0.
struct SectionKey {
  std::uint64_t collection = 0;  // of a combined section: that of the first part
  SectionId section;
  std::uint32_t set = 0;

  friend bool operator==(const SectionKey&, const SectionKey&) = default;
  friend bool operator<(const SectionKey& a, const SectionKey& b) {
    return std::tie(a.collection, a.set, a.section.high, a.section.low) <
           std::tie(b.collection, b.set, b.section.high, b.section.low);
  }
  void pup(Pup& p) { p | collection | section.high | section.low | set; }
};

// In front of a partial result on its way to the PE that counts.
struct SectionPart {
  SectionKey key;
  std::uint64_t num_members = 0;
  std::uint64_t sequence = 0;
  // The other collections of a combined section: all but that of `key`.
  std::vector<std::uint64_t> others;
  void pup(Pup& p) { p | key | num_members | sequence | others; }
};

// The reductions over one section, on the PE that counts.
class CountedSection {
 public:
  explicit CountedSection(std::uint64_t num_members, std::vector<std::uint64_t> others)
      : num_members_(num_members), others_(std::move(others)) {}

  std::uint64_t num_members() const { return num_members_; }
  // The other collections of a combined section: all but that of its key.
  const std::vector<std::uint64_t>& others() const { return others_; }
  bool is_complete(std::uint64_t sequence) const { return sequence < up_to_ || beyond_.contains(sequence); }
  runtime::Partial& open(std::uint64_t sequence) { return open_[sequence]; }
  // Takes the reduction out, as complete.
  runtime::Partial complete(std::uint64_t sequence) {
    runtime::Partial result = std::move(open_.extract(sequence).mapped());
    beyond_.insert(sequence);
    for (; !beyond_.empty() && *beyond_.begin() == up_to_; ++up_to_) beyond_.erase(beyond_.begin());
    return result;
  }
  bool has_open() const { return !open_.empty(); }
  const std::map<std::uint64_t, runtime::Partial>& all_open() const { return open_; }

 private:
  std::uint64_t num_members_;
  std::vector<std::uint64_t> others_;
  std::map<std::uint64_t, runtime::Partial> open_;
  std::uint64_t up_to_ = 0;         // all reductions below are complete
  std::set<std::uint64_t> beyond_;  // further ones, because contributions may overtake one another
};

// Behind the arguments of a message to several members.
struct Sections::Member {
  std::uint64_t index = 0;
  std::uint32_t move = 0;  // how often it has moved, as far as the caller knows
  std::uint32_t reserved = 0;
};

// A call to the members of one section that is ready to leave.
struct Sections::Outgoing {
  std::vector<std::vector<Member>> members_by_pe;
  runtime::MessagePtr call;
};

inline void write_section_header(runtime::Message& message, const EntryHeader& header) {
  std::memcpy(message.payload(), &header, sizeof header);
}

struct Sections::SectionState {
  explicit SectionState(Chares& chares_in) : chares(chares_in) {}

  struct Merged {
    std::uint64_t num_members = 0;
    std::vector<std::uint64_t> others;  // of a combined section: its other collections
    runtime::Partial partial;
  };
  using MergedKey = std::pair<SectionKey, std::uint64_t>;  // and the number of the reduction

  // The sections that were used last. Each member of a call unpacks its arguments, and to compute an identity costs a step for
  // each member: without these, a reduction over a section would take time that grows with the square of its size.
  struct Recent {
    std::uint64_t collection = 0;
    SectionMembers::Pointer members;
  };
  // Makes room for one.
  Recent& next_recent() { return recent[num_recent++ % recent.size()]; }

  // The sections in the arguments of the message that is being handled: each element unpacks the same bytes, and a long list is
  // read once.
  struct Shared {
    struct Section {
      const std::byte* at;
      std::size_t size_bytes;
      std::uint64_t collection;
      SectionMembers::Pointer members;
    };
    bool holds(const std::byte* at) const {
      return at >= arguments.data() && at < arguments.data() + arguments.size();
    }
    struct Combined {
      const std::byte* at;
      std::size_t size_bytes;
      CombinedMembers::Pointer members;
    };
    void clear() {
      sections.clear();
      combined.clear();
    }
    std::span<const std::byte> arguments;  // empty between messages
    std::vector<Section> sections;
    std::vector<Combined> combined;
  };

  // Merges a part into the reduction, and delivers the result if it is complete.
  void count(const SectionPart& part, const runtime::Partial& partial);
  // Sends the merged contributions of a turn. Quiescence counts it as a message.
  void send_merged();

  Chares& chares;
  runtime::HandlerId first_handler = 0;
  // By collection and index; only elements that have contributed.
  using Counts = std::map<SectionId, SectionCount>;  // of one element
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Counts>> counts;
  std::array<Recent, 8> recent;
  std::size_t num_recent = 0;
  Shared shared;
  std::map<MergedKey, Merged> merged;
  std::map<SectionKey, CountedSection> counted;
  runtime::OwnedWork<&SectionState::send_merged> flush{*this};
};

}  // namespace weft::chare
