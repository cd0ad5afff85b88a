#include "machine/bootstrap/termination_signal.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace weft::machine::bootstrap {
namespace {

std::atomic<int> notified_fd = -1;
std::atomic<pid_t> owner = 0;

// Runs between any two instructions of the program. A process that the program has forked has the handler and the descriptor
// too, and ends as if it had none.
void notify(int) {
  if (getpid() != owner) {
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);  // delivered when this function returns
    return;
  }
  const int error = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(notified_fd, &one, sizeof one);
  errno = error;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == notify;
}

}  // namespace

TerminationSignal::TerminationSignal() {
  struct sigaction before{};
  if (sigaction(SIGTERM, nullptr, &before) != 0 || (before.sa_flags & SA_SIGINFO) != 0 ||
      before.sa_handler != SIG_DFL) {
    return;
  }
  fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd_ < 0) return;
  notified_fd = fd_;
  owner = getpid();
  struct sigaction action{};
  action.sa_handler = notify;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

TerminationSignal::~TerminationSignal() {
  if (fd_ < 0) return;
  struct sigaction now{};
  if (sigaction(SIGTERM, nullptr, &now) == 0 && is_ours(now)) {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &action, nullptr);
  }
  notified_fd = -1;
  std::uint64_t count = 0;
  const bool has_come = read(fd_, &count, sizeof count) == sizeof count;
  close(fd_);
  if (has_come) end_process();
}

void TerminationSignal::end_process() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(SIGTERM, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(SIGTERM);
  std::_Exit(128 + SIGTERM);
}

}  // namespace weft::machine::bootstrap
