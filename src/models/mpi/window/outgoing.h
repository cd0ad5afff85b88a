// What the origin keeps of an access by messages, or by a copy, while it is under way.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/rma/segment.h"

#include "models/mpi/p2p/data_view.h"
#include "models/mpi/window/window.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {

struct Window::OutgoingAccess {
  AccessHeader header;
  int target = 0;
  std::vector<WindowRun> runs;
  DataView origin;
  DataView result;
  std::vector<std::byte> values;    // of kCompareAndSwap: the value to compare with, and the new one
  rma::GlobalAddress segment;       // of the target memory of a copy; null for messages
  std::uint64_t element_bytes = 1;  // of accumulates: a part of the access has whole ones, see cut_runs()

  // Which of its parts travel inside of the request and of the reply. REQUIRES: at most kMostRuns runs.
  void choose_flags();
};

// A copy in host memory of values on a device.
class HostCopy {
 public:
  explicit HostCopy(const DataView& view) : view_(view) {
    if (view.place.is_host()) return;
    bytes_.resize(view.size_bytes);
    view_ = DataView::of_bytes(bytes_.data(), bytes_.size());
  }
  bool is_copy() const { return !bytes_.empty(); }
  const DataView& view() const { return view_; }

 private:
  DataView view_;
  std::vector<std::byte> bytes_;
};

}  // namespace weft::mpi
