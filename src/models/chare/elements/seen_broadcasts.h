// Which broadcasts a PE has handled, or an element has run, so that an element that moves runs each exactly once.
//
// A broadcast to a collection has a source and a number: the PE that sent it counts its broadcasts from 1. Broadcasts may
// overtake one another, so what has been seen of a source is all numbers up to one, and some beyond. Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/base/pup.h"

namespace weft::chare {

struct BroadcastId {
  std::uint32_t source = 0;  // a PE, or kReductionSource
  std::uint64_t number = 0;  // 0: not numbered
};

// The source of broadcasts that deliver results of reductions to all elements of the same collection. They are numbered
// in the order of the reductions. Each PE makes its own such broadcast if the result came by recursive doubling.
inline constexpr std::uint32_t kReductionSource = ~std::uint32_t{0};

class SeenBroadcasts {
 public:
  // Returns whether it is new.
  bool add(BroadcastId id);
  bool contains(BroadcastId id) const;
  // Whether all of `other` is in this.
  bool includes(const SeenBroadcasts& other) const;
  // Whether the sources exist in a job of that many PEs, and the numbers are in order. For what a peer has sent.
  bool is_valid(int num_pes) const;
  bool empty() const { return sources_.empty(); }

  void pup(Pup& p) { p | sources_; }

 private:
  struct Source {
    std::uint32_t source = 0;
    std::uint64_t up_to = 0;            // 1 to up_to
    std::vector<std::uint64_t> beyond;  // in ascending order, none of them up_to + 1
    void pup(Pup& p) { p | source | up_to | beyond; }
  };

  const Source* find(std::uint32_t source) const;

  std::vector<Source> sources_;  // few: most collections get their broadcasts from one PE
};

}  // namespace weft::chare
