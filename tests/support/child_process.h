// A child process that does nothing until it is killed. It has a copy of this process's memory and its files.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

namespace weft::testing {

class ChildProcess {
 public:
  ChildProcess() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Others may copy its memory where the system asks for that.
    ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    for (;;) ::pause();
  }
  ~ChildProcess() {
    kill();
    reap();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Returns when the process has ended; its number is not free before reap().
  void kill() {
    if (is_reaped_ || pid_ <= 0) return;
    EXPECT_EQ(::kill(pid_, SIGKILL), 0);
    siginfo_t ended{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOWAIT), 0);
  }
  void reap() {
    if (std::exchange(is_reaped_, true) || pid_ <= 0) return;
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }

 private:
  pid_t pid_;
  bool is_reaped_ = false;
};

}  // namespace weft::testing
