#include "machine/host_queue/host_queue.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace weft::machine {

base::Status take_part_in_fences() {
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0) return {};
  return {
      base::StatusCode::kUnsupported,
      base::format("queues between the PEs of this host: membarrier failed with '{}'", std::strerror(errno))};
}

void fence_of_sleeper() { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

}  // namespace weft::machine
