// The one-sided exchange: a block puts its faces into its neighbours' segments, and then stores the step's number there.
// There is no barrier, no receive and no message: a neighbour reads the numbers in its own memory until they are there.
//
// The number has a word for each face and slot. The word of a slot is stored again two steps later. By then the number was
// read: the sender has got this block's face of the step between, which was sent afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "heat_part.h"

namespace heat3d {

// Where a neighbour puts a face, by slot.
struct ReceiveBuffer {
  std::array<weft::GlobalPtr<double>, jacobi3d::kNumSlots> values;
  std::array<weft::GlobalPtr<std::uint64_t>, jacobi3d::kNumSlots> step;
};
// By face; null where there is no neighbour.
using ReceiveBuffers = std::array<ReceiveBuffer, jacobi3d::kNumFaces>;

class OneSidedBlock : public weft::Chare<OneSidedBlock> {
 public:
  explicit OneSidedBlock(Setup setup);

  // Where neighbours put this block's faces.
  ReceiveBuffers receive_buffers() const;
  // Those of all blocks, in the order of their indices. Once, before run().
  weft::Task<> connect(std::vector<ReceiveBuffers> all);

  weft::Task<> run(int num_steps);
  weft::Task<std::vector<double>> values() { return part_.values(); }
  std::vector<double> take_step_ends() { return part_.take_step_ends(); }

 private:
  struct Side {
    int face = 0;
    ReceiveBuffer neighbour;
  };

  weft::Pgas& pgas() const { return runtime().model<weft::Pgas>(); }
  weft::Task<> step();
  weft::Task<> send_faces(int step);
  weft::Task<> wait_for_faces(int step);
  bool has_arrived(int face, int step) const;

  HeatPart part_;
  weft::pgas::Segment incoming_;  // of the block's kind of memory
  weft::pgas::Segment arrived_;   // host memory: the words
  jacobi3d::FaceBuffers buffers_;
  std::vector<Side> sides_;
};

}  // namespace heat3d
