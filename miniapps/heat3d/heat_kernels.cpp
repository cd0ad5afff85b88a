// On host memory: everything is done in the call.
#include "heat_kernels.h"

#include <algorithm>
#include <utility>

#include "stencil.h"
#include "step.h"

namespace heat3d {
namespace {

class HostHeatKernels final : public HeatKernels {
 public:
  using HeatKernels::HeatKernels;

  std::vector<jacobi3d::Interval> take_intervals() override {
    std::vector<jacobi3d::Interval> intervals = HeatKernels::take_intervals();
    intervals.insert(intervals.end(), steps_.begin(), steps_.end());
    steps_.clear();
    return intervals;
  }

 private:
  void fill_with(double* points, std::size_t count, double value) override {
    std::fill_n(points, count, value);
  }
  void step(const Step& step, const double* from, double* to) override {
    steps_.push_back(jacobi3d::timed(jacobi3d::Phase::kCompute, [&] { step_points(step, from, to); }));
  }

  std::vector<jacobi3d::Interval> steps_;
};

class HostHeat final : public HeatDevice {
 public:
  using HeatDevice::HeatDevice;
  std::unique_ptr<jacobi3d::Kernels> make_kernels(weft::runtime::Stream* stream) override {
    return std::make_unique<HostHeatKernels>(body(), faces().make_kernels(stream));
  }
};

}  // namespace

std::unique_ptr<HeatDevice> make_host_heat(const Body& body, jacobi3d::KernelDevice& faces) {
  return std::make_unique<HostHeat>(body, faces);
}

}  // namespace heat3d
