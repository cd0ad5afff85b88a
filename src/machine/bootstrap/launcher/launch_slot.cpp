#include "machine/bootstrap/launcher/launch_slot.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>

#include "base/format.h"
#include "base/host_number.h"

namespace weft::machine::bootstrap {

base::Status take_launch_slot(std::string_view job, std::string_view process) {
  // An address without a file: it ends with the last process that holds it.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Containers may share the network but not the process numbers, of which launchers make the names of their jobs.
  std::string name = base::format("weft-{}-{}-{}", job, process, base::host_number());
  if (name.size() >= sizeof address.sun_path)
    name = base::format("weft-{}-{}", std::hash<std::string>()(name), process.substr(0, 40));
  std::ranges::copy(name, address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};  // the transport will say that there are no descriptors left
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return {};
  const bool is_held = errno == EADDRINUSE;
  close(fd);
  return is_held ? launch_slot_is_used(process) : base::Status();
}

base::Status launch_slot_is_used(std::string_view process) {
  return {base::StatusCode::kUnsupported,
          base::format(
              "PE {}: the launcher's process {} has had a Weft job already, and one launch is one Weft job. "
              "For a second program start the launcher again; set WEFT_BOOTSTRAP=singleton for a program "
              "that a PE starts",
              process, process)};
}

}  // namespace weft::machine::bootstrap
