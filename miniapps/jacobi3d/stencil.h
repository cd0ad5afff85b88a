// The kernels' work in plain loops, for memory that the CPU reaches.
#pragma once

#include <chrono>

#include "kernels.h"

namespace jacobi3d {

void fill_points(double* points, const Range& range);
void update_points(const double* from, double* to, const Triple& size);
void pack_faces(const double* points, const Triple& size, const Halos& halos);
void unpack_faces(double* points, const Triple& size, const Halos& halos);

// Calls `work` and says when it ran.
template <class Work>
Interval timed(Phase phase, Work work) {
  using Clock = std::chrono::steady_clock;
  auto now_s = [] { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); };
  Interval interval{phase, now_s(), 0};
  work();
  interval.end_s = now_s();
  return interval;
}

}  // namespace jacobi3d
