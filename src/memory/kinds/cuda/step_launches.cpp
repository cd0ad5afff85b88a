// What a launch of a step takes: the short form of its parameters, and its threads.
#include <algorithm>

#include "memory/kinds/cuda/step_kernels.h"

namespace weft::memory {

namespace {

template <class T>
bool shorten(const StepList<T>& from, ShortStep::List<T>& to) {
  if (from.size > to.items.size()) return false;
  for (const T& item : from) to.add(item);
  return true;
}

}  // namespace

std::optional<ShortStep> short_step(const DeviceStep& step) {
  ShortStep result;
  if (!is_empty(step.reduction) || !shorten(step.before, result.before) ||
      !shorten(step.signals, result.signals) || !shorten(step.after, result.after)) {
    return {};
  }
  result.count = step.count;
  result.to = step.to;
  result.from = step.from;
  result.size_bytes = step.size_bytes;
  result.rings = step.rings;
  result.num_places = step.num_places;
  result.place_bytes = step.place_bytes;
  return result;
}

std::uint64_t num_vectors(const DeviceStep& step) {
  const bool has_ring = (step.rings & kRingOfContributions) != 0;
  return num_vectors(step.reduction, has_ring ? step.place_bytes : 0);
}

unsigned step_threads(const DeviceStep& step) {
  std::uint64_t wanted = step.size_bytes / 16;
  if (!is_empty(step.reduction))
    wanted = std::max(wanted, reduction_units(step.reduction, num_vectors(step)));
  wanted = std::clamp(wanted, kWarpThreads, kMaxStepThreads);
  return static_cast<unsigned>((wanted + kWarpThreads - 1) / kWarpThreads * kWarpThreads);
}

}  // namespace weft::memory
