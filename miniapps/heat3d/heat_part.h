// The part of a block that both exchanges share: its points, its steps, and when they ended.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "weft/weft.h"

#include "decomposition.h"
#include "device.h"
#include "face_buffers.h"
#include "field.h"
#include "heat_kernels.h"

namespace heat3d {

// The constructor argument of every block.
struct Setup {
  jacobi3d::Problem problem;
  Body body;
  weft::Group<jacobi3d::Device> devices;
  bool pin = false;

  void pup(weft::Pup& p) { p | problem | body | devices | pin; }
};

class HeatPart {
 public:
  HeatPart(weft::Runtime& runtime, const weft::Index& index, const Setup& setup);

  // The faces that have a neighbour, and the neighbour's index.
  const std::vector<int>& faces() const { return faces_; }
  weft::Index neighbour(int face) const { return jacobi3d::neighbour_of(index_, face); }
  jacobi3d::Field& field() { return field_; }
  weft::Place place() const { return field_.place(); }

  // Steps that are over. On a device they are queued.
  int num_steps() const { return num_steps_; }
  // Ends the step: queues the update.
  void update();
  // Waits for the device, and adds up where the time went.
  weft::Task<> finish();

  weft::Task<std::vector<double>> values() { return field_.values(); }
  // When each step since the last call ended, in seconds of the PE's clock.
  std::vector<double> take_step_ends();

 private:
  using Clock = std::chrono::steady_clock;

  jacobi3d::Triple index_;
  jacobi3d::Device& device_;
  std::vector<int> faces_;
  std::unique_ptr<HeatDevice> kernels_;
  jacobi3d::Field field_;
  int num_steps_ = 0;
  std::vector<Clock::time_point> step_ends_;
};

}  // namespace heat3d
