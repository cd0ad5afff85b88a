// The data that each PE sends to the others before the first message, and the agreement that follows from it.
//
// PE 0 always draws a secret. The job uses it unless all transports of all PEs are private: only the user's
// own processes can reach them. Private are shared memory, copies by the system or a device, and the PE itself.
// The transports are examined after UCX has opened them, because the user's UCX_TLS and the build of UCX decide
// which ones exist.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "weft/base/status.h"

#include "machine/host_queue/host_queues.h"
#include "machine/staging/staging.h"
#include "machine/ucx/setup/job_secret.h"

namespace weft::machine::ucx {

// Whether only the user's own processes on this host can reach a PE that has opened these transports. Each is
// written "transport/device". False for an unknown transport, and for an empty set.
bool are_private(const std::set<std::string>& transports);

// Whether shared memory is among the transports.
bool has_shared_memory(const std::set<std::string>& transports);

struct Introduction {
  StagingMode staging = StagingMode::kDevice;
  bool is_private = false;
  JobSecret proposed;  // the job uses the one of PE 0
  HostQueuesName queues = {};
  std::vector<std::byte> address;

  std::vector<std::byte> pack() const;
};

struct Agreement {
  std::vector<std::vector<std::byte>> addresses;  // indexed by PE
  std::vector<HostQueuesName> queues;             // indexed by PE
  std::optional<JobSecret> secret;                // empty if the job needs none
};

// Makes the agreement from the packed introductions of all PEs, indexed by PE. `pe` is the caller's number.
// kCorrupt if bytes are not an introduction, kInvalidArgument if the PEs were started with different settings.
base::Result<Agreement> agree(const std::vector<std::vector<std::byte>>& introductions, int pe);

}  // namespace weft::machine::ucx
