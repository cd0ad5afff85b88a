// How the PEs of a job merge a large value in parts: recursive halving, then recursive doubling.
//
// On one host: in round r a PE exchanges with the PE whose number differs in bit r, as in exchange_plan.h. Each of the two gets
// one half of what both have and merges it. Afterwards each PE has a part that is complete, and the rounds run backwards: the
// two give each other what they have. PEs beyond the largest power of two give their value to a PE below before, and get the
// result afterwards. So a PE sends and receives each element about twice, whatever the number of PEs is.
//
// On several hosts the rounds on each host come first. Then the PEs with the same part, one on each host, do the same among
// themselves, and then the hosts' rounds run backwards: each element crosses a link once in each direction. Hosts may have
// different numbers of PEs: the part is as large as on the host with the fewest, and on the others several PEs have the same.
// These merge it up a tree and get the result down the tree.
//
// A part is sent from the place where it is, without a copy. So no step may write what an earlier one sends, unless what it
// receives was sent by the peer after that had come.
//
// Values are merged in the same pairs as by an ExchangePlan, so the result is the same to the last bit.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/tree/host_groups.h"

namespace weft::runtime {

// Elements of the value.
struct ElementRange {
  std::size_t first = 0;
  std::size_t count = 0;

  bool operator==(const ElementRange&) const = default;
};

// This PE sends and receives, and begins the next step when it has received. An empty range stands for nothing.
struct CutStep {
  int number = 0;  // the same on both PEs
  int peer = 0;
  ElementRange sent = {};
  ElementRange received = {};
  bool merges = false;    // else what comes replaces what this PE has
  bool in_front = false;  // what comes is the first operand
};

// The steps of `pe`. `hosts`: of the PEs 0 to `num_pes` - 1; null if hosts make no difference.
std::vector<CutStep> plan_cut(int pe, int num_pes, const HostGroups* hosts, std::size_t num_elements);

}  // namespace weft::runtime
