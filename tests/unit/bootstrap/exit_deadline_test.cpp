#include "machine/bootstrap/launcher/exit_deadline.h"

#include <gtest/gtest.h>
#include <poll.h>

namespace weft::machine {
namespace {

TEST(ExitDeadlineDeathTest, AProcessThatTakesTooLongExits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const ExitDeadline deadline(10, 3, 7);
        poll(nullptr, 0, -1);
      },
      ::testing::ExitedWithCode(7), "PE 3 ends by itself: its launcher did not end the job within 10 ms");
}

TEST(ExitDeadlineDeathTest, TheExitCodeIsNeverThatOfSuccess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const ExitDeadline deadline(10, 0, 0);
        poll(nullptr, 0, -1);
      },
      ::testing::ExitedWithCode(1), "PE 0 ends by itself");
}

TEST(ExitDeadlineTest, TheLimitEndsWithTheDeadline) {
  {
    const ExitDeadline deadline(3'600'000, 0, 7);
  }
}

}  // namespace
}  // namespace weft::machine
