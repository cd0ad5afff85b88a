#include "models/chare/elements/seen_broadcasts.h"

#include <algorithm>

namespace weft::chare {

const SeenBroadcasts::Source* SeenBroadcasts::find(std::uint32_t source) const {
  const auto found = std::ranges::find(sources_, source, &Source::source);
  return found == sources_.end() ? nullptr : &*found;
}

bool SeenBroadcasts::add(BroadcastId id) {
  auto found = std::ranges::find(sources_, id.source, &Source::source);
  if (found == sources_.end()) {
    sources_.push_back({id.source, 0, {}});
    found = sources_.end() - 1;
  }
  Source& seen = *found;
  if (id.number <= seen.up_to) return false;
  if (id.number > seen.up_to + 1) {
    const auto at = std::ranges::lower_bound(seen.beyond, id.number);
    if (at != seen.beyond.end() && *at == id.number) return false;
    seen.beyond.insert(at, id.number);
    return true;
  }
  ++seen.up_to;
  auto joined = seen.beyond.begin();
  for (; joined != seen.beyond.end() && *joined == seen.up_to + 1; ++joined) ++seen.up_to;
  seen.beyond.erase(seen.beyond.begin(), joined);
  return true;
}

bool SeenBroadcasts::contains(BroadcastId id) const {
  const Source* const seen = find(id.source);
  return seen != nullptr && (id.number <= seen->up_to || std::ranges::binary_search(seen->beyond, id.number));
}

bool SeenBroadcasts::includes(const SeenBroadcasts& other) const {
  return std::ranges::all_of(other.sources_, [this](const Source& theirs) {
    const Source* const mine = find(theirs.source);
    if (mine == nullptr) return theirs.up_to == 0 && theirs.beyond.empty();
    if (theirs.up_to > mine->up_to) return false;  // mine lacks up_to + 1
    return std::ranges::all_of(theirs.beyond, [mine](std::uint64_t number) {
      return number <= mine->up_to || std::ranges::binary_search(mine->beyond, number);
    });
  });
}

bool SeenBroadcasts::is_valid(int num_pes) const {
  std::vector<std::uint32_t> known;
  return std::ranges::all_of(sources_, [num_pes, &known](const Source& one) {
    if (one.source != kReductionSource && one.source >= static_cast<std::uint32_t>(num_pes)) return false;
    if (std::ranges::find(known, one.source) != known.end()) return false;
    known.push_back(one.source);
    std::uint64_t before = one.up_to;
    for (const std::uint64_t number : one.beyond) {
      if (number <= before + (before == one.up_to ? 1 : 0)) return false;
      before = number;
    }
    return true;
  });
}

}  // namespace weft::chare
