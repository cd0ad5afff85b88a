#include "machine/bootstrap/launcher/parent_watch.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/format.h"

namespace weft::machine::bootstrap {

ParentWatch::ParentWatch(pid_t pid) : pid_(pid), fd_(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))) {}

ParentWatch::~ParentWatch() {
  if (fd_ >= 0) close(fd_);
}

base::Status ParentWatch::status(int pe) const {
  pollfd parent{fd_, POLLIN, 0};
  if (fd_ < 0 || poll(&parent, 1, 0) <= 0) return {};
  return {
      base::StatusCode::kPeerFailed,
      base::format("PE {} lost its launcher (pid {}), which has ended. The job cannot continue without it; "
                   "start it again",
                   pe, pid_)};
}

}  // namespace weft::machine::bootstrap
