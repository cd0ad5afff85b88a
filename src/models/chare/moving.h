// What a PE keeps of elements that move: those that have been asked to, those that have left, and how their state travels.
// See docs/decisions/migration.md.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/base/pup.h"
#include "weft/chare/chares.h"
#include "weft/runtime/work.h"

#include "models/chare/seen_broadcasts.h"
#include "models/chare/sync_points.h"

namespace weft::chare {

// In front of the state of an element that moves.
struct MoveHeader {
  std::uint64_t collection = 0;
  std::uint64_t index = 0;
  std::uint32_t move = 0;            // the number of this move of the element, from 1
  std::uint32_t next_reduction = 0;  // the first to which the element has not contributed
  std::uint32_t num_results = 0;  // reductions to which it has contributed whose result goes to all elements
  std::vector<std::uint64_t> beside;  // the element types of the large vectors that travel beside the state
  SeenBroadcasts seen;                // the broadcasts that it has run
  std::optional<LoadOnTheMove> load = std::nullopt;  // if the collection takes part in load balancing
  std::uint32_t set = 0;                             // of a sparse array: see SparseState
  void pup(Pup& p) {
    p | collection | index | move | next_reduction | num_results | beside | seen | load | set;
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
  bool has_arrived = false;
  SeenBroadcasts missed;  // if it has arrived: what its new PE had handled by then
};

// Elements of one collection that have left this PE, until they have all broadcasts that this PE must send after them:
// a broadcast that this PE handles after the departure, and the new PE has handled before the arrival, would otherwise
// miss the element.
class Departures {
 public:
  bool empty() const { return departures_.empty(); }
  void add(std::uint64_t index, std::uint32_t move, int to_pe) {
    departures_.insert_or_assign(Key{index, move}, Departure{index, move, to_pe, false, {}});
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

// Elements of this PE that have been asked to move. They do so in turns of their own, because the caller is as a rule an
// entry method of theirs: a number of them in each turn, so that messages are received in between, and only while the
// receivers have room, so that states do not pile up.
class WantedMoves {
 public:
  using Move = std::function<void(runtime::ElementId)>;
  WantedMoves(runtime::Runtime& runtime, Move move) : runtime_(runtime), move_(std::move(move)) {}
  WantedMoves(const WantedMoves&) = delete;
  WantedMoves& operator=(const WantedMoves&) = delete;
  ~WantedMoves() {
    if (waits_for_room_) runtime_.forget_room(&work_);
  }

  // A turn calls Move for the element. Quiescence counts it as a message.
  void add(runtime::ElementId element) {
    runtime_.count_sent();
    wanted_.push_back(element);
    if (wanted_.size() == 1 && !runtime_.closed()) runtime_.post(&work_);
  }

 private:
  static constexpr int kMovesPerTurn = 64;

  struct MoveWork : runtime::Work {
    explicit MoveWork(WantedMoves& owner_in) : runtime::Work(&MoveWork::turn), owner(owner_in) {}
    static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action) {
      if (action != runtime::WorkAction::kDrop) static_cast<MoveWork*>(self)->owner.turn();
    }
    WantedMoves& owner;
  };

  // The first element stays in the queue until the work may be posted again.
  void turn() {
    waits_for_room_ = false;
    for (int i = 0; i < kMovesPerTurn; ++i) {
      if (!runtime_.has_room(-1)) {
        waits_for_room_ = true;
        return runtime_.when_room(-1, &work_);
      }
      runtime_.count_processed();
      if (!runtime_.stopped()) move_(wanted_.front());
      wanted_.pop_front();
      if (wanted_.empty()) return;
    }
    runtime_.post_for_next_turn(&work_);
  }

  runtime::Runtime& runtime_;
  Move move_;
  std::deque<runtime::ElementId> wanted_;
  bool waits_for_room_ = false;
  MoveWork work_{*this};
};

}  // namespace weft::chare
