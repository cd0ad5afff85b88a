#include "machine/bootstrap/launcher/exit_deadline.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "base/format.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/blocked_signals.h"

namespace weft::machine {

ExitDeadline::ExitDeadline(int limit_ms, int pe, int exit_code) : stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  if (stop_fd_ < 0) return;
  const bootstrap::BlockedSignals blocked;
  try {
    thread_ = std::thread([=, stop_fd = stop_fd_] {
      pollfd stop{stop_fd, POLLIN, 0};
      if (poll(&stop, 1, limit_ms) != 0) return;
      bootstrap::print_last_words(base::format(
          "weft: PE {} ends by itself: its launcher did not end the job within {} ms", pe, limit_ms));
      std::_Exit(exit_code == 0 ? 1 : exit_code);
    });
  } catch (const std::system_error&) {
    close(stop_fd_);
    stop_fd_ = -1;  // no limit
  }
}

ExitDeadline::~ExitDeadline() {
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof one);
    thread_.join();
  }
  if (stop_fd_ >= 0) close(stop_fd_);
}

}  // namespace weft::machine
