// On host memory: everything is done in the call.
#include <utility>

#include "stencil.h"

namespace jacobi3d {
namespace {

class HostKernels final : public Kernels {
 public:
  void fill(double* points, const Range& range) override { fill_points(points, range); }
  void update(const double* from, double* to, const Triple& size) override {
    intervals_.push_back(timed(Phase::kCompute, [&] { update_points(from, to, size); }));
  }
  void pack(const double* points, const Triple& size, const Halos& halos) override {
    intervals_.push_back(timed(Phase::kPack, [&] { pack_faces(points, size, halos); }));
  }
  void unpack(double* points, const Triple& size, const Halos& halos) override {
    intervals_.push_back(timed(Phase::kPack, [&] { unpack_faces(points, size, halos); }));
  }
  std::vector<Interval> take_intervals() override { return std::exchange(intervals_, {}); }

 private:
  std::vector<Interval> intervals_;
};

class HostDevice final : public KernelDevice {
 public:
  std::unique_ptr<Kernels> make_kernels(weft::runtime::Stream*) override {
    return std::make_unique<HostKernels>();
  }
};

}  // namespace

std::unique_ptr<KernelDevice> make_host_device() { return std::make_unique<HostDevice>(); }

}  // namespace jacobi3d
