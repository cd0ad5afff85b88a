// The command line of jacobi3d.
#pragma once

#include <string>
#include <vector>

#include "decomposition.h"
#include "device.h"

namespace jacobi3d {

struct Options {
  Triple points{96, 96, 96};
  int odf = 4;
  int iterations = 100;
  int warmup = 10;
  std::vector<std::string> models{"messaging", "channel"};
  Placement placement;
  bool verify = false;
  bool checksum = true;
  std::string json_file;  // empty: none
  bool help = false;
};

// Throws UserError, whose text says what is wrong and what to write instead.
Options parse_options(int argc, char** argv);

std::string help_text();

}  // namespace jacobi3d
