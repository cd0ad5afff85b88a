// On an emulated device: the loops of plate.h, run by the stream through the device's view of its memory.
#include <memory>
#include <span>

#include "weft/weft.h"

#include "device_streams/emulated_graph.h"
#include "kernels.h"
#include "plate.h"

namespace heat_conduction {
namespace {

double* view_points(const weft::DeviceView& view, const double* points, std::size_t num_rows,
                    std::size_t width) {
  return view(std::span(const_cast<double*>(points), (num_rows + 2) * width)).data();
}

class EmulatedKernels final : public Kernels {
 public:
  explicit EmulatedKernels(weft::Stream& stream) : stream_(stream) {}

  void update(const double* now, double* next, std::size_t num_rows, std::size_t width) override {
    stream_.launch([=](const weft::DeviceView& view) {
      update_rows(view_points(view, now, num_rows, width), view_points(view, next, num_rows, width), num_rows,
                  width);
    });
  }
  void find_hottest(const double* points, double* hottest, std::size_t num_rows, std::size_t width) override {
    stream_.launch([=](const weft::DeviceView& view) {
      view(std::span(hottest, 1))[0] =
          hottest_of(view_points(view, points, num_rows, width), num_rows, width);
    });
  }
  std::unique_ptr<miniapps::Graph> capture(const std::function<void()>& queue) override {
    return std::make_unique<miniapps::EmulatedGraph>(stream_, queue);
  }

 private:
  weft::Stream& stream_;
};

}  // namespace

std::unique_ptr<Kernels> make_emulated_kernels(weft::runtime::Stream& stream) {
  return std::make_unique<EmulatedKernels>(stream);
}

}  // namespace heat_conduction
