// The command line of heat3d.
#pragma once

#include <string>

#include "body.h"
#include "device.h"

namespace heat3d {

enum class Exchange { kChannel, kPgas };
const char* name_of(Exchange exchange);

struct Options {
  Triple points{64, 64, 64};
  int odf = 1;
  int steps = 1000;
  int warmup = 100;
  Exchange exchange = Exchange::kPgas;
  jacobi3d::Placement placement;
  bool pin = false;
  bool verify = false;
  std::string json_file;  // empty: none
  bool help = false;

  int all_steps() const { return warmup + steps; }
  // Power enters during the first half of the steps, as in the tutorial.
  Body body() const;
};

// Throws miniapps::UserError, whose text says what is wrong and what to write instead.
Options parse_options(int argc, char** argv);

std::string help_text();

}  // namespace heat3d
