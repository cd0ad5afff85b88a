// Records that a PE keeps of elements that have left, and the form in which their state travels.
// See docs/decisions/migration.md.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/chares.h"

#include "models/chare/elements/seen_broadcasts.h"

namespace weft::chare {

// In front of the state of an element that moves.
struct MoveHeader {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::uint32_t move = 0;            // the number of this move of the element, from 1
  std::uint32_t next_reduction = 0;  // the first to which the element has not contributed
  std::uint32_t num_results = 0;  // reductions to which it has contributed whose result goes to all elements
  std::vector<std::uint64_t>
      out_of_band;                      // the element types of the large vectors that travel beside the state
  SeenBroadcasts seen;                  // the broadcasts that it has run
  std::uint32_t feature_bytes = 0;      // of what Feature::pack() has packed, behind the header
  std::uint32_t num_waiting_calls = 0;  // behind the state
  bool has_waiting_calls = false;       // there, or in the state
  std::uint32_t set = 0;                // of a sparse array: see SparseState
  std::vector<std::uint64_t> futures = {};  // links of the old PE, see runtime::FutureTable
  void pup(Pup& p) {
    p | collection | index | move | next_reduction | num_results | out_of_band | seen | feature_bytes |
        num_waiting_calls | has_waiting_calls | set | futures;
  }
};

// An element has arrived. The answer to MoveHeader.
struct Arrival {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::uint32_t move = 0;
  SeenBroadcasts
      handled;  // the broadcasts that the PE had handled, and that the element therefore does not get there
  void pup(Pup& p) { p | collection | index | move | handled; }
};

struct Departure {
  std::uint64_t index = 0;
  std::uint32_t move = 0;
  int to_pe = 0;
  std::uint32_t set = 0;  // as in MoveHeader
  bool has_arrived = false;
  SeenBroadcasts missed;  // if it has arrived: what its new PE had handled by then
};

// Elements of one collection that have left this PE, until they have all broadcasts that this PE must send after them:
// a broadcast that this PE handles after the departure, and the new PE has handled before the arrival, would otherwise
// miss the element.
class Departures {
 public:
  bool empty() const { return departures_.empty(); }
  void add(std::uint64_t index, std::uint32_t move, int to_pe, std::uint32_t set) {
    departures_.insert_or_assign(Key{index, move}, Departure{index, move, to_pe, set, false, {}});
  }
  // Returns false if no such departure is known. `handled_here`: what this PE has handled.
  bool arrived(Arrival&& arrival, const SeenBroadcasts& handled_here) {
    const auto found = departures_.find(Key{arrival.index, arrival.move});
    if (found == departures_.end() || found->second.has_arrived) return false;
    if (handled_here.includes(arrival.handled)) {
      departures_.erase(found);
    } else {
      found->second.has_arrived = true;
      found->second.missed = std::move(arrival.handled);
    }
    return true;
  }
  // Calls `send` for each element to which this PE must send the broadcast, which it has just handled.
  template <class Send>
  void handled(BroadcastId id, const SeenBroadcasts& handled_here, Send send) {
    std::erase_if(departures_, [&](const auto& one) {
      const Departure& departure = one.second;
      if (!departure.has_arrived || departure.missed.contains(id)) send(departure);
      return departure.has_arrived && handled_here.includes(departure.missed);
    });
  }

 private:
  using Key = std::pair<std::uint64_t, std::uint32_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<std::uint64_t>()((key.first * 0x9e3779b97f4a7c15) ^ key.second);
    }
  };
  std::unordered_map<Key, Departure, Hash> departures_;
};

}  // namespace weft::chare
