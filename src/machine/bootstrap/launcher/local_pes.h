// Which PEs of a job share this one's host. By an exchange: PMI does not say it, and PMIx counts containers with process
// numbers of their own as one host, between which there is no shared memory.
#pragma once

#include <cstdint>

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/start_notice.h"

namespace weft::machine::bootstrap {

struct LocalPes {
  int rank = 0;  // of this PE among them
  int size = 1;
};

// Collective over the bootstrap. `host` is base::host_number().
base::Result<LocalPes> exchange_local_pes(Bootstrap& bootstrap, std::uint64_t host);

// The same as the first exchange under a launcher that may not notice every end: with a StartNotice, which has `notice_ms` and `say`.
base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host,
                                      int notice_ms = kStartNoticeMs, const Say& say = {});

}  // namespace weft::machine::bootstrap
