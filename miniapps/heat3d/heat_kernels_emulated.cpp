// On an emulated device: the same loops, run by the stream through the device's view of its memory.
#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "weft/weft.h"

#include "heat_kernels.h"
#include "step.h"

namespace heat3d {
namespace {

class EmulatedHeatKernels final : public HeatKernels {
 public:
  EmulatedHeatKernels(const Body& body, std::unique_ptr<jacobi3d::Kernels> faces, weft::Stream& stream)
      : HeatKernels(body, std::move(faces)), stream_(stream) {}

 private:
  void fill_with(double* points, std::size_t count, double value) override {
    stream_.launch([=](const weft::DeviceView& view) {
      const std::span<double> found = view(std::span(points, count));
      std::fill(found.begin(), found.end(), value);
    });
  }
  void step(const Step& step, const double* from, double* to) override {
    const std::size_t count = jacobi3d::Layout(step.range.size).num_values();
    stream_.launch([=](const weft::DeviceView& view) {
      step_points(step, view(std::span(const_cast<double*>(from), count)).data(),
                  view(std::span(to, count)).data());
    });
  }

  weft::Stream& stream_;
};

class EmulatedHeat final : public HeatDevice {
 public:
  using HeatDevice::HeatDevice;
  std::unique_ptr<jacobi3d::Kernels> make_kernels(weft::runtime::Stream* stream) override {
    return std::make_unique<EmulatedHeatKernels>(body(), faces().make_kernels(stream), *stream);
  }
};

}  // namespace

std::unique_ptr<HeatDevice> make_emulated_heat(const Body& body, jacobi3d::KernelDevice& faces) {
  return std::make_unique<EmulatedHeat>(body, faces);
}

}  // namespace heat3d
