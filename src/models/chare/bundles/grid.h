// The ways of aggregated calls between many PEs: a call goes through one other PE at most.
//
// The PEs stand in the columns of a grid. A call goes to the PE of its own row that is in the column of its destination, and from there to
// its destination. A PE therefore sends to the PEs of its row and of its column alone. Columns may differ in length: if there is no PE
// in that row and column, the call goes along its own column first, and then along the row of its destination.
//
// Invariant: the way from one PE to another is always the same, and all PEs know it.
#pragma once

#include <memory>

#include "runtime/tree/host_groups.h"

namespace weft::chare {

// From this number of PEs on there is a grid. README.md has the measurement.
inline constexpr int kLeastGridPes = 48;

class Grid {
 public:
  // No grid: each call goes to its destination.
  Grid() = default;
  // The columns are the hosts, so that a call crosses the network once; or, if that needs many more bundles than columns of equal length,
  // neighbours. `hosts`: null if hosts make no difference.
  Grid(int num_pes, const runtime::HostGroups* hosts);

  bool is_direct() const { return columns_ == nullptr; }
  // The PE to which PE `from` sends calls for PE `to`. What it sends on from there arrives.
  int next(int from, int to) const;

 private:
  std::shared_ptr<const runtime::HostGroups> columns_;  // null if there is no grid
};

}  // namespace weft::chare
