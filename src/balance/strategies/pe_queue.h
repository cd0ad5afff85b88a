// The PEs by the time at which each would finish one more object: the core of the greedy strategies.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/balance/snapshot.h"

namespace weft::balance {

// An object that can move.
struct MovableObject {
  double load_s = 0;
  // Its position in the snapshot.
  std::uint32_t object = 0;
};

// Largest load first; equal loads in the order of the snapshot.
std::vector<MovableObject> movable_by_load(const Snapshot& snapshot);

// The time of each PE with the load that cannot move: background load and objects that must stay.
std::vector<double> fixed_times_s(const Snapshot& snapshot);

// Times only grow. PEs of equal speed share a heap, ordered by their time: among them the one with the earliest time is also
// the one that finishes any object first. earliest() compares the heads of the heaps, one for each distinct speed.
//
// add() does not touch the heaps. An entry may therefore hold an earlier time than its PE has. earliest() brings the head of
// a heap up to date until it is true, and then no other PE of that heap can be earlier.
class PeQueue {
 public:
  PeQueue(const Snapshot& snapshot, std::vector<double> times_s);

  // When `pe` would be done if it also had an object of this load.
  double finish_s(int pe, double load_s) const {
    return times_s_[static_cast<std::size_t>(pe)] + load_s * seconds_per_load_[static_cast<std::size_t>(pe)];
  }
  void add(int pe, double load_s) { times_s_[static_cast<std::size_t>(pe)] = finish_s(pe, load_s); }

  // The PE that would finish an object of this load first; of several, the one with the lowest number if their speeds are
  // equal, else the fastest.
  int earliest(double load_s);

  const std::vector<double>& times_s() const { return times_s_; }

 private:
  struct QueuedPe {
    double time_s;
    int pe;
    bool operator<(const QueuedPe& other) const {
      return time_s != other.time_s ? time_s < other.time_s : pe < other.pe;
    }
  };
  using Heap = std::vector<QueuedPe>;
  void bring_up_to_date(Heap& heap);

  std::vector<double> times_s_;
  std::vector<double> seconds_per_load_;
  // By speed, fastest first.
  std::vector<Heap> heaps_;
};

}  // namespace weft::balance
