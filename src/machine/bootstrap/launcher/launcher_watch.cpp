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

void add_one(int fd) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
}

bool readable(short events) { return (events & (POLLIN | POLLHUP | POLLERR)) != 0; }

}  // namespace

base::Result<std::unique_ptr<LauncherWatch>> LauncherWatch::start(Bootstrap& bootstrap,
                                                                  std::function<void(LauncherWord)> on_word,
                                                                  std::function<void(LostPe)> on_loss) {
  std::unique_ptr<LauncherWatch> self(new LauncherWatch(bootstrap, std::move(on_word), std::move(on_loss)));
  if (self->watched_fd_ < 0) return self;
  self->stop_fd_ = eventfd(0, EFD_CLOEXEC);
  self->read_fd_ = eventfd(0, EFD_CLOEXEC);
  if (self->stop_fd_ < 0 || self->read_fd_ < 0)
    return cannot_watch(self->pe_, "no event descriptor", errno, "ulimit -n");
  // Signals are for the program's own threads.
  const bootstrap::BlockedSignals blocked;
  try {
    self->thread_ = std::thread([watch = self.get()] { watch->watch(); });
  } catch (const std::system_error& error) {
    return cannot_watch(self->pe_, "no thread", error.code().value(), "ulimit -u");
  }
  return self;
}

LauncherWatch::LauncherWatch(Bootstrap& bootstrap, std::function<void(LauncherWord)> on_word,
                             std::function<void(LostPe)> on_loss)
    : bootstrap_(bootstrap),
      pe_(bootstrap.pe()),
      watched_fd_(bootstrap.watch_fd()),
      on_word_(std::move(on_word)),
      on_loss_(std::move(on_loss)) {}

LauncherWatch::~LauncherWatch() {
  if (thread_.joinable()) {
    add_one(stop_fd_);
    thread_.join();
  }
  for (const int fd : {stop_fd_, read_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void LauncherWatch::go_on() {
  if (read_fd_ >= 0) add_one(read_fd_);
}

bool LauncherWatch::wait_until_read() {
  // The word is still there, so only the end of the connection is asked for.
  std::array<pollfd, 3> fds = {pollfd{stop_fd_, POLLIN, 0}, pollfd{read_fd_, POLLIN, 0},
                               pollfd{watched_fd_, POLLRDHUP, 0}};
  while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  if (!readable(fds[0].revents) && !readable(fds[1].revents)) {
    // The launcher has gone. The PE gets as much time to read the word as for one that ends it.
    int ready = 0;
    while ((ready = poll(fds.data(), 2, kGraceMs)) < 0 && errno == EINTR) {
    }
    if (ready == 0) end_process();
  }
  std::uint64_t count = 0;
  return !readable(fds[0].revents) && read(read_fd_, &count, sizeof count) > 0;
}

void LauncherWatch::watch() {
  std::array<pollfd, 2> fds = {pollfd{stop_fd_, POLLIN, 0}, pollfd{watched_fd_, POLLIN, 0}};
  while (true) {
    while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
    }
    if (readable(fds[0].revents) || !readable(fds[1].revents)) return;
    if (std::optional<LostPe> lost = on_loss_ ? bootstrap_.take_loss() : std::nullopt) {
      on_loss_(*std::move(lost));
      continue;
    }
    const LauncherWord word = bootstrap_.next_word();  // before the PE's thread reads the word
    on_word_(word);
    if (word == LauncherWord::kResizing && wait_until_read()) continue;
    if (word == LauncherWord::kEndsProcess && poll(fds.data(), 1, kGraceMs) == 0) end_process();
    return;
  }
}

void LauncherWatch::end_process() const {
  bootstrap::print_last_words(
      base::format("weft: PE {} ends although it is busy: its launcher has gone or ended the job {} ms ago",
                   pe_, kGraceMs));
  std::_Exit(1);
}

}  // namespace weft::machine
