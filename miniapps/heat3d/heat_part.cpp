#include "heat_part.h"

#include <utility>

#include "weft_bench/cores/pin.h"

namespace heat3d {
namespace {

std::unique_ptr<HeatDevice> make_heat_device(const Body& body, jacobi3d::Device& device) {
  switch (device.place().kind) {
    case weft::Kind::kCuda:
      return make_cuda_heat(body, device.kernels());
    case weft::Kind::kEmulated:
      return make_emulated_heat(body, device.kernels());
    case weft::Kind::kHost:
      break;
  }
  return make_host_heat(body, device.kernels());
}

}  // namespace

HeatPart::HeatPart(weft::Runtime& runtime, const weft::Index& index, const Setup& setup)
    : index_{index[0], index[1], index[2]},
      device_(*setup.devices.on_this_pe()),
      faces_(jacobi3d::faces_inside(setup.problem, index_)),
      kernels_(make_heat_device(setup.body, device_)),
      field_(runtime, jacobi3d::range_of(setup.problem, index_), device_.place(), *kernels_) {
  if (setup.pin) weft::benchmarks::pin(runtime.pe());
}

void HeatPart::update() {
  field_.update();
  ++num_steps_;
  step_ends_.push_back(Clock::now());
}

weft::Task<> HeatPart::finish() {
  co_await field_.done();
  device_.add(field_.take_intervals());
}

std::vector<double> HeatPart::take_step_ends() {
  std::vector<double> ends_s;
  ends_s.reserve(step_ends_.size());
  for (Clock::time_point end : std::exchange(step_ends_, {}))
    ends_s.push_back(std::chrono::duration<double>(end.time_since_epoch()).count());
  return ends_s;
}

}  // namespace heat3d
