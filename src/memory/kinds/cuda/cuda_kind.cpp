// The factory of kind cuda, and its setting WEFT_GPUS. The kind exists on a PE if the process can load the
// CUDA driver and the driver has a device.
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/format.h"
#include "memory/kinds/cuda/cuda_backend.h"
#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/kind_factory.h"
#include "memory/kinds/memory_options.h"

namespace weft::memory {

using base::Result;
using base::Status;
using base::StatusCode;

namespace {

Status bad_gpus(std::string_view text) {
  return Status(
      StatusCode::kInvalidArgument,
      base::format("WEFT_GPUS='{}' is neither 'auto' (the default), 'none' nor a list of devices such "
                   "as '0,2'",
                   text));
}

Status read_cuda_environment(MemoryOptions& options) {
  const char* const gpus = std::getenv("WEFT_GPUS");
  return gpus == nullptr ? Status() : options.of<CudaOptions>().set_gpus(gpus);
}

Result<std::unique_ptr<KindBackend>> make_cuda(const MemoryOptions& options) {
  const CudaOptions cuda = options.of<CudaOptions>();
  if (cuda.driver.empty()) {
    return Status(StatusCode::kUnsupported, "cuda memory is switched off (WEFT_GPUS=none)");
  }
  Result<std::unique_ptr<CudaDriver>> driver = CudaDriver::load(cuda.driver);
  if (!driver.ok()) {
    if (cuda.devices.empty()) {
      return Status(StatusCode::kUnsupported, std::string(driver.status().message()));
    }
    return Status(StatusCode::kNotFound,
                  base::format("--gpus (WEFT_GPUS) names device {}: this process cannot use cuda memory: {}",
                               cuda.devices.front(), driver.status().message()));
  }
  const int num_devices = (*driver)->num_devices();
  for (const int device : cuda.devices) {
    if (device < num_devices) continue;
    return Status(
        StatusCode::kOutOfRange,
        base::format(
            "--gpus (WEFT_GPUS) names device {}: there is no cuda:{}: this process has {} cuda devices",
            device, device, num_devices));
  }
  return std::unique_ptr<KindBackend>(std::make_unique<CudaBackend>(std::move(*driver), cuda.devices));
}

}  // namespace

Status CudaOptions::set_gpus(std::string_view text) {
  std::vector<int> named;
  if (text == "none") {
    driver.clear();
  } else if (text != "auto") {
    for (const char* next = text.data();; ++next) {
      const char* const end = text.data() + text.size();
      std::int16_t device = -1;
      const auto [stopped, error] = std::from_chars(next, end, device);
      if (error != std::errc() || device < 0) return bad_gpus(text);
      named.push_back(device);
      if (stopped == end) break;
      if (*stopped != ',') return bad_gpus(text);
      next = stopped;
    }
  }
  devices = std::move(named);
  return {};
}

const KindFactory kinds::cuda = {NativeApi::kCuda, &read_cuda_environment, &make_cuda};

}  // namespace weft::memory
