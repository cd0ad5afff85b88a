#include "job/drain_signal.h"

#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/format.h"
#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/launcher/blocked_signals.h"

namespace weft::job {
namespace {

// A signal handler has no other way to its data.
std::atomic<int> asked_fd{-1};
// Handlers that may write to a descriptor that they have read there.
std::atomic<int> num_asking{0};
// The process is to leave. The next incarnation of the job asks again, because the launcher may have dropped what this one has asked.
std::atomic<bool> has_come{false};

constexpr std::uint64_t kDrainAsked = 1;
constexpr std::uint64_t kDrainEnds = std::uint64_t{1} << 32;

void add_to(int fd, std::uint64_t value) {
  [[maybe_unused]] const ssize_t written = write(fd, &value, sizeof value);
}

void ask_to_drain(int /*signal*/) {
  const int error = errno;
  has_come.store(true);
  num_asking.fetch_add(1);
  if (const int fd = asked_fd.load(); fd >= 0) add_to(fd, kDrainAsked);
  num_asking.fetch_sub(1);
  errno = error;
}

const char kHeldVariable[] = "WEFT_DRAIN_HELD";

sigset_t sigterm_alone() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  return signals;
}

bool is_ours() {
  struct sigaction current{};
  return sigaction(SIGTERM, nullptr, &current) == 0 && current.sa_handler == &ask_to_drain;
}

// What is held comes at its end.
class HeldSignal {
 public:
  HeldSignal() = default;
  ~HeldSignal() {
    const sigset_t signals = sigterm_alone();
    if (DrainSignal::is_held()) pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    unsetenv(kHeldVariable);  // it concerns this process alone
  }
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;
};

bool is_sigterm_free() {
  struct sigaction current{};
  return sigaction(SIGTERM, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) == 0 &&
         (current.sa_handler == SIG_DFL || current.sa_handler == &ask_to_drain);
}

}  // namespace

std::unique_ptr<DrainSignal> DrainSignal::from_environment(runtime::Runtime& runtime,
                                                           machine::Bootstrap& bootstrap) {
  const HeldSignal until_the_handler_is_there;
  const char* const name = std::getenv("WEFT_DRAIN_ON");
  if (name == nullptr || std::string_view(name) != "SIGTERM") return nullptr;
  if (!is_sigterm_free()) {
    std::fputs(
        base::format("weft: PE {}: the program handles SIGTERM itself, so the signal does not drain the PE "
                     "(--drain-on)\n",
                     runtime.pe())
            .c_str(),
        stderr);
    return nullptr;
  }
  std::unique_ptr<DrainSignal> made(new DrainSignal);
  return made->begin(runtime, bootstrap) ? std::move(made) : nullptr;
}

bool DrainSignal::begin(runtime::Runtime& runtime, machine::Bootstrap& bootstrap) {
  fd_ = eventfd(0, EFD_CLOEXEC);
  if (fd_ < 0) return false;
  const machine::bootstrap::BlockedSignals blocked;
  try {
    thread_ = std::thread([fd = fd_, &runtime, &bootstrap] {
      std::uint64_t count = 0;
      while (::read(fd, &count, sizeof count) > 0 && count < kDrainEnds) {
        // The watch of the launcher notices a connection that has broken.
        runtime.post_from_any_thread([&bootstrap] { static_cast<void>(bootstrap.ask_for_resize(0)); });
      }
    });
  } catch (const std::system_error&) {
    return false;
  }
  asked_fd.store(fd_);
  if (has_come.load()) add_to(fd_, kDrainAsked);
  struct sigaction ours{};
  ours.sa_handler = &ask_to_drain;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  return sigaction(SIGTERM, &ours, nullptr) == 0;
}

// The handler stays: a signal between two incarnations is not to end the process.
DrainSignal::~DrainSignal() {
  int own = fd_;
  asked_fd.compare_exchange_strong(own, -1);  // a Job may live on, and end after the next one has begun
  while (num_asking.load() != 0) sched_yield();
  if (thread_.joinable()) {
    add_to(fd_, kDrainEnds);
    thread_.join();
  }
  if (fd_ >= 0) close(fd_);
}

void DrainSignal::give_back() {
  if (is_ours()) signal(SIGTERM, SIG_DFL);
}

std::string DrainSignal::hold(sigset_t& blocked) {
  const bool holds = is_ours() && sigismember(&blocked, SIGTERM) == 0;
  if (holds) {
    sigaddset(&blocked, SIGTERM);
    const sigset_t signals = sigterm_alone();
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    // It is blocked, so it waits for this thread, and such a signal outlives exec().
    if (has_come.load()) pthread_kill(pthread_self(), SIGTERM);  // NOLINT(bugprone-bad-signal-to-kill-thread)
  }
  return base::format("{}={}", kHeldVariable, holds ? 1 : 0);
}

bool DrainSignal::is_held() {
  const char* const text = std::getenv(kHeldVariable);
  return text != nullptr && std::string_view(text) == "1";
}

}  // namespace weft::job
