// The body, and the arithmetic of one step on one point: what all kernels and the serial solution share. Nothing here is
// Weft's, so that a GPU's compiler needs to know nothing of it.
//
// The problem is the heat conduction of the Kokkos tutorials. A box of points starts at one temperature. In each step
//   - heat is conducted between neighbouring points,
//   - each outer side of a point radiates in proportion to the fourth power of its temperature,
//   - power enters the points of the side x = 0, during the first steps.
#pragma once

#include <cstddef>

#include "grid.h"

namespace heat3d {

using jacobi3d::Range;
using jacobi3d::Triple;

// The defaults are those of the tutorial. All values are in units that make the body's constants simple.
struct Body {
  Triple points{};
  double initial_temperature = 0.0;
  double conductivity = 1.0;
  double radiation = 1.0;
  double power = 1.0;
  int power_steps = 0;  // power enters in so many steps
  double time_step = 0.1;

  template <class P>
  void pup(P& p) {
    p | points | initial_temperature | conductivity | radiation | power | power_steps | time_step;
  }
};

// A point and its neighbours. A neighbour outside of the body has the point's own temperature, which conducts nothing.
struct Neighbourhood {
  double own, x_lower, x_upper, y_lower, y_upper, z_lower, z_upper;
};

// How many sides of the point at `index` along a dimension are outer ones.
constexpr int num_outer_sides(int index, int num_points) {
  return (index == 0 ? 1 : 0) + (index == num_points - 1 ? 1 : 0);
}

// The temperature after a step. Adding in this order, and with nothing fused, makes results equal to the last bit everywhere.
constexpr double next_temperature(const Body& body, const Neighbourhood& at, int outer_sides, double power) {
  double change = body.conductivity * (at.x_lower - at.own);
  change += body.conductivity * (at.x_upper - at.own);
  change += body.conductivity * (at.y_lower - at.own);
  change += body.conductivity * (at.y_upper - at.own);
  change += body.conductivity * (at.z_lower - at.own);
  change += body.conductivity * (at.z_upper - at.own);
  if (power != 0.0) change += power;
  if (outer_sides != 0) change -= body.radiation * at.own * at.own * at.own * at.own * outer_sides;
  return at.own + body.time_step * change;
}

// One step of a block: the points of `range`, and the power that enters each point of the side x = 0.
struct Step {
  Body body;
  Range range;
  double power = 0.0;
};

// A row of points along z: where the neighbours of its points are, and how many outer sides each has.
struct Row {
  constexpr Row(const Step& step, int x, int y) : Row(step, x, y, jacobi3d::Layout(step.range.size)) {}

  std::size_t x_lower_distance;  // 0 if the neighbour is outside of the body
  std::size_t x_upper_distance;
  std::size_t y_lower_distance;
  std::size_t y_upper_distance;
  int outer_sides;  // across x and y
  double power;

 private:
  constexpr Row(const Step& step, int x, int y, const jacobi3d::Layout& layout)
      : Row(step, step.range.first[0] + x, step.range.first[1] + y, layout.x_stride(), layout.y_stride()) {}
  constexpr Row(const Step& step, int x, int y, std::size_t x_stride, std::size_t y_stride)
      : x_lower_distance(x == 0 ? 0 : x_stride),
        x_upper_distance(x == step.body.points[0] - 1 ? 0 : x_stride),
        y_lower_distance(y == 0 ? 0 : y_stride),
        y_upper_distance(y == step.body.points[1] - 1 ? 0 : y_stride),
        outer_sides(num_outer_sides(x, step.body.points[0]) + num_outer_sides(y, step.body.points[1])),
        power(x == 0 ? step.power : 0.0) {}
};

// The new temperature of the point that is number `z` of a row. `own` points to it.
constexpr double step_point(const Step& step, const Row& row, const double* own, int z) {
  const int z_in_body = step.range.first[2] + z;
  const double z_lower = z_in_body == 0 ? *own : *(own - 1);
  const double z_upper = z_in_body == step.body.points[2] - 1 ? *own : own[1];
  const Neighbourhood at{*own,
                         *(own - row.x_lower_distance),
                         own[row.x_upper_distance],
                         *(own - row.y_lower_distance),
                         own[row.y_upper_distance],
                         z_lower,
                         z_upper};
  return next_temperature(step.body, at, row.outer_sides + num_outer_sides(z_in_body, step.body.points[2]),
                          row.power);
}

}  // namespace heat3d
