#include "base/host_number.h"

#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <string>

#include "base/format.h"

namespace weft::base {

std::uint64_t host_number() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat pids{};
  struct stat network{};
  if (!(file >> boot) || ::stat("/proc/self/ns/pid", &pids) != 0 ||
      ::stat("/proc/self/ns/net", &network) != 0) {
    return 0;
  }
  return std::hash<std::string>()(
             format("{} {} {} {} {}", boot, pids.st_dev, pids.st_ino, network.st_dev, network.st_ino)) |
         1;
}

}  // namespace weft::base
