// The two-sided exchange: a channel to each neighbour. Receives are posted one step ahead, so that a face that arrives early
// lands in its buffer.
#pragma once

#include <array>
#include <vector>

#include "weft/weft.h"

#include "heat_part.h"

namespace heat3d {

class TwoSidedBlock : public weft::Chare<TwoSidedBlock> {
 public:
  explicit TwoSidedBlock(Setup setup);

  weft::Task<> run(int num_steps);
  weft::Task<std::vector<double>> values() { return part_.values(); }
  std::vector<double> take_step_ends() { return part_.take_step_ends(); }

 private:
  struct Side {
    int face = 0;
    weft::Channel channel;
  };
  // The operations of the steps that use a slot.
  struct HaloSlot {
    std::vector<weft::Operation> sends;
    std::vector<weft::Operation> receives;
  };

  HaloSlot& slot(int step) { return slots_[static_cast<std::size_t>(step % jacobi3d::kNumSlots)]; }
  void post_receives(int step);
  weft::Task<> step(bool is_last);
  static weft::Task<> end(std::vector<weft::Operation>& operations);

  HeatPart part_;
  jacobi3d::FaceBuffers buffers_;
  std::vector<Side> sides_;
  std::array<HaloSlot, jacobi3d::kNumSlots> slots_;
};

}  // namespace heat3d
