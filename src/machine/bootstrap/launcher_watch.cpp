#include "machine/bootstrap/launcher_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "machine/bootstrap/last_words.h"

namespace weft::machine {
namespace {

// Signals are for the program's own threads.
std::thread start_without_signals(auto function) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(function));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

bool readable(short events) { return (events & (POLLIN | POLLHUP | POLLERR)) != 0; }

}  // namespace

LauncherWatch::LauncherWatch(Bootstrap& bootstrap, std::function<void()> on_word)
    : pe_(bootstrap.pe()), watched_fd_(bootstrap.watch_fd()), on_word_(std::move(on_word)) {
  if (watched_fd_ < 0) return;
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  thread_ = start_without_signals([this] { watch(); });
}

LauncherWatch::~LauncherWatch() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_fd_, &one, sizeof(one));
  thread_.join();
  close(stop_fd_);
}

void LauncherWatch::watch() {
  std::array<pollfd, 2> fds = {pollfd{stop_fd_, POLLIN, 0}, pollfd{watched_fd_, POLLIN, 0}};
  while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  if (readable(fds[0].revents) || !readable(fds[1].revents)) return;
  on_word_();
  if (poll(fds.data(), 1, kGraceMs) != 0) return;
  bootstrap::print_last_words(
      fmt::format("weft: PE {} ends although it is busy: its launcher has gone or ended the job {} ms ago",
                  pe_, kGraceMs));
  std::_Exit(1);
}

}  // namespace weft::machine
