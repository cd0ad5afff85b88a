// The command line of heat_conduction.
#pragma once

#include <string>

#include "weft/weft.h"

namespace heat_conduction {

struct Options {
  int size = 96;
  int odf = 4;
  int check_every = 20;
  double until = 0.5;
  std::string model = "channel";
  weft::Kind memory = weft::Kind::kHost;
  bool verify = false;
  bool checksum = false;
  bool help = false;
};

inline constexpr char kHelp[] = R"(usage: weft run -n PES heat_conduction [options]

Heat conduction: a plate with cold edges cools until its hottest point is below a limit.

  --size N         rows and columns of points (96)
  --odf N          strips per PE (4)
  --until X        the temperature to reach, above 0 (0.5)
  --check-every N  steps between two checks (20)
  --model NAME     channel: the CPU waits for each row; for device memory: queued: kernels, sends and receives are
                   queued on the strip's stream; graph: two such steps are captured once, and launched again and
                   again (channel)
  --memory KIND    with --model queued and graph, where the points are: emulated, or cuda, a GPU for each PE
  --verify         compare each point with the exact result
  --checksum       print a checksum of every bit of the result

What is timed. From PE 0's broadcast that starts the strips until the last one has answered. The last line is a
JSON object with the time as "value" in seconds, as those of the measuring programs.
)";

// Throws miniapps::UserError, whose text says what is wrong.
Options parse_options(int argc, char** argv);

}  // namespace heat_conduction
