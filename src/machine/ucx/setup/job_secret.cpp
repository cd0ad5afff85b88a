#include "machine/ucx/setup/job_secret.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/format.h"

namespace weft::machine::ucx {

base::Result<JobSecret> JobSecret::draw() {
  JobSecret secret;
  if (getrandom(secret.bytes_.data(), kBytes, 0) != static_cast<ssize_t>(kBytes)) {
    return base::Status(
        base::StatusCode::kInternal,
        base::format("the system gives no random bytes for the job's secret: {}", std::strerror(errno)));
  }
  return secret;
}

base::Result<JobSecret> JobSecret::from_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() != kBytes) {
    return base::Status(base::StatusCode::kCorrupt,
                        base::format("the job's secret arrived with {} bytes instead of {}; do all PEs run "
                                     "the same version of Weft?",
                                     bytes.size(), kBytes));
  }
  JobSecret secret;
  std::copy(bytes.begin(), bytes.end(), secret.bytes_.begin());
  return secret;
}

}  // namespace weft::machine::ucx
