// The command line of pic.
#pragma once

#include <string>

#include "problem.h"

namespace pic {

struct Options {
  Problem problem;
  std::int64_t steps = 100;
  std::int64_t warmup = 1;  // steps before them
  std::int64_t odf = 1;
  std::int64_t lb_every = 0;  // steps between two sync points; 0: none
  bool counts_particles = false;
  std::string split = "x";
  bool verify = false;
  bool help = false;
};

// Everything but the blocks. Throws UserError, whose text says what is wrong and what to write instead.
Options parse_options(int argc, char** argv);

std::string help_text();

}  // namespace pic
