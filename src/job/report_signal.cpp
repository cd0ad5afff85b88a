#include "job/report_signal.h"

#include <atomic>
#include <cstdio>
#include <string>

#include "base/format.h"

namespace weft::job {

namespace {

// A signal handler has no other way to its data.
std::atomic<runtime::Runtime*> asked_runtime{nullptr};

void ask(int /*signal*/) {
  if (runtime::Runtime* const runtime = asked_runtime.load()) runtime->ask_for_report();
}

}  // namespace

ReportSignal::ReportSignal(runtime::Runtime& runtime) : runtime_(runtime) {
  struct sigaction current{};
  if (sigaction(SIGUSR1, nullptr, &current) != 0 || (current.sa_flags & SA_SIGINFO) != 0 ||
      current.sa_handler != SIG_DFL) {
    return;
  }
  runtime_.set_report_function([this] {
    if (runtime_.pe() != 0 || runtime_.ending()) return;
    runtime_.report_waits(false, [](const std::string& text) {
      std::fputs(base::format("weft: what the PEs of the job wait for\n{}", text).c_str(), stderr);
      std::fflush(stderr);
    });
  });
  asked_runtime.store(&runtime_);
  struct sigaction ours{};
  ours.sa_handler = &ask;
  ours.sa_flags = SA_RESTART;
  sigemptyset(&ours.sa_mask);
  is_set_ = sigaction(SIGUSR1, &ours, nullptr) == 0;
}

ReportSignal::~ReportSignal() {
  if (!is_set_) return;
  struct sigaction current{};
  if (sigaction(SIGUSR1, nullptr, &current) == 0 && current.sa_handler == &ask) {
    current.sa_handler = SIG_DFL;
    sigaction(SIGUSR1, &current, nullptr);
  }
  asked_runtime.store(nullptr);
}

}  // namespace weft::job
