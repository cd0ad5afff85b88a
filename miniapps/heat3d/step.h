// The step of a block in plain loops, for memory that the CPU reaches.
#pragma once

#include "body.h"

namespace heat3d {

// Every point of `to` becomes that of `from` after the step. Both have ghost points, which `from` has received.
void step_points(const Step& step, const double* from, double* to);

}  // namespace heat3d
