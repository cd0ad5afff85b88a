#include "machine/ucx/shared_memory.h"

#include <sys/statvfs.h>

#include <cstdlib>

namespace weft::machine::ucx {

bool has_room_for_posix(int pes_on_host) {
  const char* const folder = std::getenv("UCX_POSIX_DIR");
  struct statvfs state{};
  if (statvfs(folder == nullptr ? "/dev/shm" : folder, &state) != 0) return false;
  return holds_posix_segments(std::uint64_t{state.f_bsize} * state.f_bavail, pes_on_host);
}

}  // namespace weft::machine::ucx
