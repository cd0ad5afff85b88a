// Cuts an access whose target memory has more runs than one request may name.
//
// Threads: the PE's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/mpi/p2p/data_view.h"
#include "models/mpi/window/wire.h"

namespace weft::mpi {

struct RunPart {
  std::size_t num_runs = 0;
  std::uint64_t size_bytes = 0;
};
// Parts of at most `most_runs` runs each. A part ends after a whole number of elements of `element_bytes`, if one does so within
// `most_runs`; else it ends with a run.
std::vector<RunPart> cut_runs(std::span<const WindowRun> runs, std::uint64_t element_bytes,
                              std::size_t most_runs);

// Hands out a view in parts, from its first packed byte on.
class ViewParts {
 public:
  explicit ViewParts(const DataView& view);
  // The next bytes; all parts of an empty view are empty. REQUIRES: the view has them.
  DataView next(std::size_t size_bytes);

 private:
  std::vector<WindowRun> take(std::uint64_t size_bytes);
  void drop_pieces(std::uint64_t count);

  DataView view_;
  std::size_t done_bytes_ = 0;       // of a view without gaps
  std::vector<WindowRun> runs_;      // of one with gaps, from its data on
  std::size_t next_run_ = 0;         // the pieces of it that are left
  std::uint64_t skipped_bytes_ = 0;  // of its first piece
};

}  // namespace weft::mpi
