// A block whose stream does everything: kernels, sends and receives of faces are queued. The CPU waits at the end of
// run(), and when much is queued. With Setup::use_graphs, two iterations are captured once and launched often.
//
// All sends of an iteration come before its receives. A send of iteration i waits for the neighbour's receive of
// iteration i - 1, which frees the landing. A receive waits for the neighbour's send of the same iteration. So each
// waits for something earlier, whatever PEs the blocks are on.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "device_streams/queued_iterations.h"
#include "part.h"

namespace jacobi3d {

class QueuedBlock : public weft::Chare<QueuedBlock> {
 public:
  explicit QueuedBlock(Setup setup);

  // REQUIRES: run(0) of all blocks is over before the first iteration, because what it does may wait for the device.
  weft::Task<> run(int iterations);
  weft::Task<std::vector<double>> values() { return part_.values(); }
  weft::Task<std::uint64_t> checksum() { return part_.checksum(); }

 private:
  struct Side {
    int face = 0;
    weft::QueuedChannel channel;
  };

  // Does what may wait for the device: connects, loads the kernels, and captures the graph. A stream that waits for
  // another block of this PE would then wait for ever.
  weft::Task<> prepare();
  void queue_iteration(int slot);

  Part part_;
  std::vector<Side> sides_;
  miniapps::QueuedIterations iterations_;
  bool is_prepared_ = false;
};

}  // namespace jacobi3d
