#include "base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace weft::base {

namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

std::size_t page_bytes() { return static_cast<std::size_t>(std::max(sysconf(_SC_PAGESIZE), 1L)); }

std::size_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages <= 0 ? kNoLimit : static_cast<std::size_t>(pages) * page_bytes();
}

// The memory limit of a container or of a resource manager's job. Without a limit the file says "max".
std::size_t container_bytes() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::size_t limit_bytes = 0;
  return file >> limit_bytes ? limit_bytes : kNoLimit;
}

std::size_t address_space_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  std::ifstream file("/proc/self/statm");
  std::size_t used_pages = 0;
  file >> used_pages;
  const std::size_t used_bytes = used_pages * page_bytes();
  return limit.rlim_cur > used_bytes ? static_cast<std::size_t>(limit.rlim_cur) - used_bytes : 1;
}

}  // namespace

std::size_t available_memory_bytes() {
  return std::max<std::size_t>(1, std::min({physical_bytes(), container_bytes(), address_space_bytes()}));
}

}  // namespace weft::base
