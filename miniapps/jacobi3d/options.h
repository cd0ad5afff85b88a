// The command line of jacobi3d.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "decomposition.h"
#include "device.h"

namespace jacobi3d {

// CUDA's setting of how many hardware queues the streams of a process have, read when the driver starts: 8 by default,
// 32 at most. If two streams share a queue, one's wait for a face holds back the other's send, for which it may wait.
inline constexpr const char* kDeviceQueuesSetting = "CUDA_DEVICE_MAX_CONNECTIONS";
inline constexpr const char* kMostDeviceQueues = "32";
// Whether blocks wait for one another on their streams.
inline bool is_queued_model(std::string_view model) { return model == "queued" || model == "graph"; }

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
