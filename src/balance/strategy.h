// A load-balancing strategy: a pure decision, without the runtime. Loads and communication in, a placement out.
//
// Threads: one thread at a time uses an object of Strategy. Different objects share nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/balance/snapshot.h"

namespace weft::balance {

class DistributedStrategy;

struct StrategyOptions {
  // Strategies that compare with a target stop when the most loaded PE is within this part of it. The value is measured:
  // docs/decisions/load-balancing.md.
  double tolerance = 0.02;
  // For strategies that draw numbers.
  std::uint64_t seed = 1;
};

class Strategy {
 public:
  Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;
  virtual ~Strategy() = default;

  // The name in the table of strategies, or the one under which the program has registered it.
  virtual std::string_view name() const = 0;

  // Where each object shall be. REQUIRES: check(snapshot).ok(). The result passes check(snapshot, placement).
  // Equal objects of Strategy give equal placements for equal sequences of snapshots, on every machine. The call may change
  // the strategy's own state, for example the position in its sequence of random numbers.
  // A strategy of a program may do otherwise: callers check the placement, and are ready for an exception.
  virtual Placement place(const Snapshot& snapshot) = 0;

  // How the PEs of a job decide together, without a snapshot; null if the strategy needs one. Both ways give the same placement.
  // Belongs to this object.
  virtual const DistributedStrategy* distributed() const { return nullptr; }
};

}  // namespace weft::balance
