#include "memory/memory_options.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "fmt/format.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

Status bad_gpus(std::string_view text) {
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("WEFT_GPUS='{}' is neither 'auto' (the default), 'none' nor a list of devices such "
                  "as '0,2'",
                  text));
}

}  // namespace

Status MemoryOptions::set_gpus(std::string_view text) {
  std::vector<int> devices;
  if (text == "none") {
    cuda_driver.clear();
  } else if (text != "auto") {
    for (const char* next = text.data();; ++next) {
      const char* const end = text.data() + text.size();
      std::int16_t device = -1;
      const auto [stopped, error] = std::from_chars(next, end, device);
      if (error != std::errc() || device < 0) return bad_gpus(text);
      devices.push_back(device);
      if (stopped == end) break;
      if (*stopped != ',') return bad_gpus(text);
      next = stopped;
    }
  }
  cuda_devices = std::move(devices);
  return {};
}

Result<MemoryOptions> MemoryOptions::from_environment(int local_rank) {
  MemoryOptions options;
  options.local_rank = local_rank;
  if (const char* gpus = std::getenv("WEFT_GPUS"); gpus != nullptr) {
    if (Status status = options.set_gpus(gpus); status.failed()) return status;
  }
  if (const char* faults = std::getenv("WEFT_EMULATED_FAULTS"); faults != nullptr) {
    Result<EmulatedFaults> parsed = parse_emulated_faults(faults);
    if (!parsed.ok()) {
      return Status(parsed.status().code(),
                    fmt::format("WEFT_EMULATED_FAULTS: {}", parsed.status().message()));
    }
    options.emulated_faults = *parsed;
  }
  return options;
}

}  // namespace weft::memory
