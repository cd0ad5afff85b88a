// Which PEs of a job share this one's host. By an exchange: PMI does not say it, and PMIx counts containers with process
// numbers of their own as one host, between which there is no shared memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "machine/bootstrap/bootstrap.h"

namespace weft::machine::bootstrap {

struct LocalPes {
  int rank = 0;  // of this PE among them
  int size = 1;
};

// PE 0 says so once if the other PEs let it wait for that long.
inline constexpr int kStartPatienceMs = 30000;

// Collective over the bootstrap, and its first exchange. `host` is base::host_number(). `say` gets the sentence, on
// another thread.
base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host,
                                      int patience_ms = kStartPatienceMs,
                                      const std::function<void(std::string_view)>& say = {});

}  // namespace weft::machine::bootstrap
