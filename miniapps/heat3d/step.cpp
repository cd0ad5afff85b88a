#include "step.h"

namespace heat3d {
namespace {

// The points of a row that have both neighbours along z inside the body. The loop has no branch for the compiler to keep.
template <bool kOnSide>
void step_inside(const Step& step, const Row& row, const double* own, double* to, int first, int last) {
  const Body body = step.body;
  const double* const x_lower = own - row.x_lower_distance;
  const double* const x_upper = own + row.x_upper_distance;
  const double* const y_lower = own - row.y_lower_distance;
  const double* const y_upper = own + row.y_upper_distance;
  const int outer_sides = kOnSide ? row.outer_sides : 0;
  const double power = kOnSide ? row.power : 0.0;
  double* const __restrict target = to;
  for (int z = first; z < last; ++z) {
    target[z] = next_temperature(
        body, {own[z], x_lower[z], x_upper[z], y_lower[z], y_upper[z], own[z - 1], own[z + 1]}, outer_sides,
        power);
  }
}

}  // namespace

void step_points(const Step& step, const double* from_points, double* to_points) {
  const Triple& size = step.range.size;
  const jacobi3d::Layout layout(size);
  const bool lower_is_outer = step.range.first[2] == 0;
  const bool upper_is_outer = step.range.first[2] + size[2] == step.body.points[2];
  const int first = lower_is_outer ? 1 : 0;
  const int last = upper_is_outer ? size[2] - 1 : size[2];
  for (int x = 0; x < size[0]; ++x) {
    for (int y = 0; y < size[1]; ++y) {
      const Row row(step, x, y);
      const double* const own = from_points + layout.offset(x, y, 0);
      double* const to = to_points + layout.offset(x, y, 0);
      if (lower_is_outer) to[0] = step_point(step, row, own, 0);
      if (row.outer_sides != 0) {
        step_inside<true>(step, row, own, to, first, last);
      } else {
        step_inside<false>(step, row, own, to, first, last);
      }
      if (upper_is_outer) to[size[2] - 1] = step_point(step, row, own + size[2] - 1, size[2] - 1);
    }
  }
}

}  // namespace heat3d
