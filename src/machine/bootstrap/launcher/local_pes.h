// Which PEs of a job share this one's host. By an exchange: PMI does not say it, and PMIx counts containers with process
// numbers of their own as one host, between which there is no shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/start_notice.h"

namespace weft::machine::bootstrap {

struct LocalPes {
  int rank = 0;  // of this PE among them
  int size = 1;
};

// `hosts`: what the PEs have given of their hosts, in an exchange.
LocalPes local_pes(const std::vector<std::vector<std::byte>>& hosts, int pe);

// Collective over the bootstrap, and its first exchange. `host` is base::host_number(). `notice_ms` and `say` as for
// StartNotice.
base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host,
                                      int notice_ms = kStartNoticeMs, const Say& say = {});

}  // namespace weft::machine::bootstrap
