// A strategy that needs no PE which knows all loads. In each round PEs meet in pairs: the two tell each other their times and
// speeds, and one of them may give objects to the other. The objects themselves move after the last round.
//
// The functions are pure. DistributedDecision runs them on one PE; it sends nothing itself.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace weft::balance {

// The PE of an object of which its owner's PE only knows that it is elsewhere.
inline constexpr int kElsewhere = -1;

// The bytes that one of the PE's own objects exchanged with another object, in both directions together or in one of them.
struct OwnEdge {
  // A number that names the other object. Two own objects that talk to each other name one another.
  std::uint64_t other = 0;
  // Where this PE believes the other object to be. It is sure of its own objects only.
  int believed_pe = kElsewhere;
  std::uint64_t bytes = 0;
};

// An object that this PE has, by the decisions so far.
struct OwnObject {
  std::uint64_t object = 0;
  double load_s = 0;
  bool can_move = true;
  std::vector<OwnEdge> edges;
};

struct PeState {
  int pe = 0;
  double time_s = 0;
  double speed = 1;
};

class DistributedStrategy {
 public:
  DistributedStrategy() = default;
  DistributedStrategy(const DistributedStrategy&) = delete;
  DistributedStrategy& operator=(const DistributedStrategy&) = delete;
  virtual ~DistributedStrategy() = default;

  virtual int num_rounds(int num_pes) const = 0;
  // The PE that `pe` meets in a round; none if it rests. Pairs agree: the partner's partner is `pe`.
  // REQUIRES: 0 <= round < num_rounds(num_pes), 0 <= pe < num_pes.
  virtual std::optional<int> partner(int pe, int round, int num_pes) const = 0;
  // Whether `own` gives objects to `partner`, or looks for some. Both PEs of a pair ask for both: at most one of them gives.
  virtual bool gives(const PeState& own, const PeState& partner) const = 0;
  // The numbers of the objects that `own` gives, each one an object that can move. `objects` are all objects of the PE.
  virtual std::vector<std::uint64_t> choose(const PeState& own, const std::vector<OwnObject>& objects,
                                            const PeState& partner) const = 0;
};

}  // namespace weft::balance
