// The command line of programs whose streams order the exchange of halos: models "queued" and "graph".
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fmt/format.h"

#include "weft/weft.h"

#include "command_line/user_error.h"

namespace miniapps {

// CUDA's setting of how many hardware queues the streams of a process have, read when the driver starts: 8 by default,
// 32 at most. If two streams share a queue, one's wait for a halo holds back the other's send, for which it may wait.
inline constexpr const char* kDeviceQueuesSetting = "CUDA_DEVICE_MAX_CONNECTIONS";
inline constexpr const char* kMostDeviceQueues = "32";
// Streams of Weft's own and of CUDA's are six today, and some room.
inline constexpr int kOtherStreams = 8;

// Whether blocks wait for one another on their streams.
inline bool is_queued_model(std::string_view model) { return model == "queued" || model == "graph"; }

// For command lines with such a model, before the driver starts. Other models keep CUDA's default.
inline void ask_for_device_queues(int argc, char** argv) {
  if (std::any_of(argv, argv + argc, is_queued_model)) setenv(kDeviceQueuesSetting, kMostDeviceQueues, 0);
}

// Throws UserError if streams cannot order the exchange of halos.
inline void expect_device_queues(const std::string& model, weft::Kind memory, int odf) {
  if (memory == weft::Kind::kHost) {
    throw UserError(
        fmt::format("--model {} needs streams of a device: give --memory emulated or cuda with it", model));
  }
  if (memory != weft::Kind::kCuda) return;
  const char* const given = std::getenv(kDeviceQueuesSetting);
  const std::string_view setting = given == nullptr ? "8" : given;
  int num_queues = 0;  // of a setting that is no number
  std::from_chars(setting.data(), setting.data() + setting.size(), num_queues);
  const int most = std::max(0, num_queues - kOtherStreams);
  if (odf <= most) return;
  throw UserError(fmt::format(
      "--model {} with --odf {}: with {}={} the streams of at most {} blocks of a PE have hardware queues of "
      "their own; give a smaller --odf, {}={}, or --model channel",
      model, odf, kDeviceQueuesSetting, setting, most, kDeviceQueuesSetting, kMostDeviceQueues));
}

}  // namespace miniapps
