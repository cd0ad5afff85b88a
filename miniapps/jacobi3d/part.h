// The part of a block that all models share: its part of the grid, its neighbours, the buffers of its faces,
// and its results.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/weft.h"

#include "decomposition.h"
#include "device.h"
#include "face_buffers.h"
#include "field.h"
#include "progress.h"

namespace jacobi3d {

// The constructor argument of every block.
struct Setup {
  Problem problem;
  weft::Group<Device> devices;
  ProgressProxy progress;
  int report_every = 0;     // iterations; 0: never
  bool use_graphs = false;  // of a QueuedBlock

  void pup(weft::Pup& p) { p | problem | devices | progress | report_every | use_graphs; }
};

class Part {
 public:
  Part(weft::Runtime& runtime, const weft::Index& index, Setup setup);

  bool use_graphs() const { return setup_.use_graphs; }
  // The faces that have a neighbour, and the neighbour's index.
  const std::vector<int>& faces() const { return faces_; }
  weft::Index neighbour(int face) const { return neighbour_of(index_, face); }

  Field& field() { return field_; }
  FaceBuffers& buffers() { return buffers_; }
  // Which of the buffers the current iteration uses.
  int slot() const { return iteration_ % kNumSlots; }
  // Iterations begun since the block was made.
  int iteration() const { return iteration_; }

  // Ends the iteration: queues its update.
  void update();
  // So many iterations have been queued by other means.
  void count_iterations(int count);
  // Waits for the device, and adds up where the time went.
  weft::Task<> finish();

  weft::Task<std::vector<double>> values() { return field_.values(); }
  weft::Task<std::uint64_t> checksum() { return field_.checksum(setup_.problem.points); }

 private:
  Setup setup_;
  Triple index_;
  Device& device_;
  std::vector<int> faces_;
  Field field_;
  FaceBuffers buffers_;
  int iteration_ = 0;
};

}  // namespace jacobi3d
