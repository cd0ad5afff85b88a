#include "machine/bootstrap/termination_signal.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace weft::machine::bootstrap {
namespace {

bool has_come(const TerminationSignal& termination, int limit_ms) {
  pollfd fds{termination.fd(), POLLIN, 0};
  return poll(&fds, 1, limit_ms) == 1;
}

TEST(TerminationSignalTest, TheThreadDecidesWhenTheProcessEnds) {
  EXPECT_EXIT(
      {
        const TerminationSignal termination;
        if (has_come(termination, 0)) std::_Exit(2);
        kill(getpid(), SIGTERM);
        if (!has_come(termination, 10000)) std::_Exit(3);
        TerminationSignal::end_process();
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(TerminationSignalTest, ASignalThatNoThreadHasSeenEndsTheProcessLater) {
  EXPECT_EXIT(
      {
        {
          const TerminationSignal termination;
          kill(getpid(), SIGTERM);
          has_come(termination, 10000);
        }
        std::_Exit(2);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(TerminationSignalTest, AfterwardsTheSignalEndsTheProcessByItself) {
  EXPECT_EXIT(
      {
        {
          const TerminationSignal termination;
        }
        kill(getpid(), SIGTERM);
        std::_Exit(2);
      },
      testing::KilledBySignal(SIGTERM), "");
}

TEST(TerminationSignalTest, AHandlerOfTheProgramStays) {
  EXPECT_EXIT(
      {
        signal(SIGTERM, [](int) { std::_Exit(7); });
        const TerminationSignal termination;
        if (termination.fd() != -1) std::_Exit(2);
        kill(getpid(), SIGTERM);
        std::_Exit(3);
      },
      testing::ExitedWithCode(7), "");
}

TEST(TerminationSignalTest, AForkedProcessEndsAloneAndAtOnce) {
  EXPECT_EXIT(
      {
        const TerminationSignal termination;
        const pid_t child = fork();
        if (child == 0) {
          kill(getpid(), SIGTERM);
          std::_Exit(2);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) std::_Exit(3);
        std::_Exit(has_come(termination, 0) ? 4 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::machine::bootstrap
