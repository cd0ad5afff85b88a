// What each PE tells the others before the first message, and what they agree on.
//
// PE 0 always draws a secret. All PEs use it unless every one of them has opened only transports that nobody
// but the user's own processes can reach: shared memory, copies by the system or a device, and the PE itself.
// The transports are looked at after UCX has opened them, because the user's UCX_TLS and the build of UCX
// decide which there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/base/status.h"

#include "machine/staging/staging.h"
#include "machine/ucx/job_secret.h"

namespace weft::machine::ucx {

// Whether only the user's own processes on this host can reach a PE that has opened these transports, each
// "transport/device". False for a transport that is not known to be private, and if there is none at all.
bool are_private(const std::set<std::string>& transports);

struct Introduction {
  StagingMode staging = StagingMode::kDevice;
  bool is_private = false;
  JobSecret proposed;  // that of PE 0 counts
  std::vector<std::byte> address;

  std::vector<std::byte> pack() const;
};

struct Agreement {
  std::vector<std::vector<std::byte>> addresses;  // indexed by PE
  std::optional<JobSecret> secret;                // of the job, if it needs one
};

// From the packed introductions of all PEs, indexed by PE; `pe` is the caller's. kCorrupt for bytes that are no
// introduction, kInvalidArgument if the PEs were started with different settings.
base::Result<Agreement> agree(const std::vector<std::vector<std::byte>>& introductions, int pe);

}  // namespace weft::machine::ucx
