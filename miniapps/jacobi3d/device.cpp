#include "device.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "decomposition.h"

namespace jacobi3d {
namespace {

// The length of the union of those of `intervals`, which are sorted by start, that `wanted` takes.
template <class Wanted>
double covered_s(const std::vector<Interval>& intervals, Wanted wanted) {
  double covered = 0;
  double end = 0;
  bool first = true;
  for (const Interval& interval : intervals) {
    if (!wanted(interval)) continue;
    double start = first ? interval.start_s : std::max(interval.start_s, end);
    if (interval.end_s > start) covered += interval.end_s - start;
    end = first ? interval.end_s : std::max(end, interval.end_s);
    first = false;
  }
  return covered;
}

std::unique_ptr<KernelDevice> make_kernel_device(weft::Place place) {
  switch (place.kind) {
    case weft::Kind::kCuda:
      return make_cuda_device(place.device);
    case weft::Kind::kEmulated:
      return make_emulated_device();
    case weft::Kind::kHost:
      break;
  }
  return make_host_device();
}

}  // namespace

void* handle_of(const weft::Stream& stream) { return stream.handle(); }

Times add_up(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.start_s < b.start_s; });
  Times times;
  times.compute_s = covered_s(intervals, [](const Interval& i) { return i.phase == Phase::kCompute; });
  times.pack_s = covered_s(intervals, [](const Interval&) { return true; }) - times.compute_s;
  return times;
}

Device::Device(Placement placement)
    : placement_(placement),
      place_(weft::device_of(runtime(), placement.memory)),
      kernels_(make_kernel_device(place_)) {}

void Device::add(std::vector<Interval> intervals) {
  intervals_.insert(intervals_.end(), intervals.begin(), intervals.end());
}

Times Device::take_times() { return add_up(std::exchange(intervals_, {})); }

void expect_usable(weft::Runtime& runtime, const Placement& placement) {
  if (placement.memory == weft::Kind::kCuda && !cuda_is_built()) {
    throw UserError(
        "--memory cuda: this program was built without a CUDA compiler; install one (nvcc), configure anew "
        "and "
        "build");
  }
  try {
    static_cast<void>(weft::device_of(runtime, placement.memory));
  } catch (const weft::Error& error) {
    throw UserError(fmt::format("--memory {}: {}", kind_name(placement.memory), error.what()));
  }
}

}  // namespace jacobi3d
