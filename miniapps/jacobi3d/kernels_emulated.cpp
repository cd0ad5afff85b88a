// On an emulated device: the same loops, run by the stream through the device's view of its memory.
#include <memory>
#include <span>
#include <utility>

#include "weft/weft.h"

#include "device_streams/emulated_graph.h"
#include "stencil.h"

namespace jacobi3d {
namespace {

double* view_points(const weft::DeviceView& view, const double* points, const Triple& size) {
  return view(std::span(const_cast<double*>(points), Layout(size).num_values())).data();
}

Halos view_halos(const weft::DeviceView& view, const Triple& size, const Halos& halos) {
  Halos found;
  for (int i = 0; i < halos.count; ++i) {
    const auto [face, values] = halos.halo[i];
    found.add(face, view(std::span(values, Layout(size).face_points(face))).data());
  }
  return found;
}

class EmulatedKernels final : public Kernels {
 public:
  explicit EmulatedKernels(weft::Stream& stream) : stream_(stream) {}

  void fill(double* points, const Range& range) override {
    stream_.launch(
        [=](const weft::DeviceView& view) { fill_points(view_points(view, points, range.size), range); });
  }
  void update(const double* from, double* to, const Triple& size) override {
    stream_.launch([=, intervals = intervals_](const weft::DeviceView& view) {
      intervals->push_back(timed(Phase::kCompute, [&] {
        update_points(view_points(view, from, size), view_points(view, to, size), size);
      }));
    });
  }
  void pack(const double* points, const Triple& size, const Halos& halos) override {
    stream_.launch([=, intervals = intervals_](const weft::DeviceView& view) {
      intervals->push_back(timed(Phase::kPack, [&] {
        pack_faces(view_points(view, points, size), size, view_halos(view, size, halos));
      }));
    });
  }
  void unpack(double* points, const Triple& size, const Halos& halos) override {
    stream_.launch([=, intervals = intervals_](const weft::DeviceView& view) {
      intervals->push_back(timed(Phase::kPack, [&] {
        unpack_faces(view_points(view, points, size), size, view_halos(view, size, halos));
      }));
    });
  }
  std::vector<Interval> take_intervals() override { return std::exchange(*intervals_, {}); }
  std::unique_ptr<Graph> capture(const std::function<void()>& queue) override {
    return std::make_unique<miniapps::EmulatedGraph>(stream_, queue);
  }

 private:
  weft::Stream& stream_;
  // Shared with queued work, which may outlive this object.
  std::shared_ptr<std::vector<Interval>> intervals_ = std::make_shared<std::vector<Interval>>();
};

class EmulatedDevice final : public KernelDevice {
 public:
  std::unique_ptr<Kernels> make_kernels(weft::runtime::Stream* stream) override {
    return std::make_unique<EmulatedKernels>(*stream);
  }
};

}  // namespace

std::unique_ptr<KernelDevice> make_emulated_device() { return std::make_unique<EmulatedDevice>(); }

}  // namespace jacobi3d
