#include "machine/bootstrap/launcher/launcher_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/blocked_signals.h"

namespace weft::machine {
namespace {

base::Status cannot_watch(int pe, std::string_view what, int error, std::string_view limit) {
  return {base::StatusCode::kInternal,
          base::format("PE {} cannot watch its launcher: {}: {} (errno {}). Check `{}`.", pe, what,
                       std::strerror(error), error, limit)};
}

bool readable(short events) { return (events & (POLLIN | POLLHUP | POLLERR)) != 0; }

}  // namespace

base::Result<std::unique_ptr<LauncherWatch>> LauncherWatch::start(Bootstrap& bootstrap,
                                                                  std::function<void()> on_word,
                                                                  std::function<void(LostPe)> on_loss) {
  std::unique_ptr<LauncherWatch> self(new LauncherWatch(bootstrap, std::move(on_word), std::move(on_loss)));
  if (self->watched_fd_ < 0) return self;
  self->stop_fd_ = eventfd(0, EFD_CLOEXEC);
  if (self->stop_fd_ < 0) return cannot_watch(self->pe_, "no event descriptor", errno, "ulimit -n");
  // Signals are for the program's own threads.
  const bootstrap::BlockedSignals blocked;
  try {
    self->thread_ = std::thread([watch = self.get()] { watch->watch(); });
  } catch (const std::system_error& error) {
    return cannot_watch(self->pe_, "no thread", error.code().value(), "ulimit -u");
  }
  return self;
}

LauncherWatch::LauncherWatch(Bootstrap& bootstrap, std::function<void()> on_word,
                             std::function<void(LostPe)> on_loss)
    : bootstrap_(bootstrap),
      pe_(bootstrap.pe()),
      watched_fd_(bootstrap.watch_fd()),
      on_word_(std::move(on_word)),
      on_loss_(std::move(on_loss)) {}

LauncherWatch::~LauncherWatch() {
  if (stop_fd_ < 0) return;
  if (thread_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof(one));
    thread_.join();
  }
  close(stop_fd_);
}

void LauncherWatch::watch() {
  std::array<pollfd, 2> fds = {pollfd{stop_fd_, POLLIN, 0}, pollfd{watched_fd_, POLLIN, 0}};
  while (true) {
    while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
    }
    if (readable(fds[0].revents) || !readable(fds[1].revents)) return;
    std::optional<LostPe> lost = on_loss_ ? bootstrap_.take_loss() : std::nullopt;
    if (!lost) break;
    on_loss_(*std::move(lost));
  }
  const bool ends_process = bootstrap_.ends_process();  // before the PE's thread reads the word
  on_word_();
  if (!ends_process || poll(fds.data(), 1, kGraceMs) != 0) return;
  bootstrap::print_last_words(
      base::format("weft: PE {} ends although it is busy: its launcher has gone or ended the job {} ms ago",
                   pe_, kGraceMs));
  std::_Exit(1);
}

}  // namespace weft::machine
