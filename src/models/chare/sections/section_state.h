// What a PE keeps of reductions over sections.
//
// As a PE with members: how many reductions each element has contributed to, and the contributions of this turn, merged. As the
// PE that counts a section's contributions: the reductions that are not complete, and which ones are.
// Threads: one PE's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/chare/sections.h"
#include "weft/runtime/work.h"

#include "runtime/collective/partial.h"

namespace weft::chare {

// One section, and of a sparse array one set of counted elements: its reductions are numbered from 0.
struct SectionKey {
  std::uint64_t collection = 0;
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
  void pup(Pup& p) { p | key | num_members | sequence; }
};

// The reductions over one section, on the PE that counts.
class CountedSection {
 public:
  explicit CountedSection(std::uint64_t num_members) : num_members_(num_members) {}

  std::uint64_t num_members() const { return num_members_; }
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
  std::map<std::uint64_t, runtime::Partial> open_;
  std::uint64_t up_to_ = 0;         // all reductions below are complete
  std::set<std::uint64_t> beyond_;  // further ones, because contributions may overtake one another
};

struct Sections::State {
  explicit State(Sections& owner) : flush(owner) {}

  // Sends the merged contributions of a turn. Quiescence counts it as a message.
  struct FlushWork : runtime::Work {
    explicit FlushWork(Sections& owner_in) : runtime::Work(&FlushWork::turn), owner(owner_in) {}
    static void turn(runtime::Work* self, runtime::Runtime& runtime, runtime::WorkAction action);
    Sections& owner;
  };

  struct Merged {
    std::uint64_t num_members = 0;
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
    std::span<const std::byte> arguments;  // empty between messages
    std::vector<Section> sections;
  };

  // Merges a part into the reduction, and delivers the result if it is complete.
  void count(Chares& chares, const SectionPart& part, const runtime::Partial& partial);

  runtime::HandlerId first_handler = 0;
  // By collection and index; only elements that have contributed.
  using Counts = std::map<SectionId, SectionCount>;  // of one element
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Counts>> counts;
  std::array<Recent, 8> recent;
  std::size_t num_recent = 0;
  Shared shared;
  std::map<MergedKey, Merged> merged;
  std::map<SectionKey, CountedSection> counted;
  FlushWork flush;
};

}  // namespace weft::chare
