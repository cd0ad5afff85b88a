#include "machine/bootstrap/launcher/launch_slot.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace weft::machine::bootstrap {
namespace {

// No other run of the tests has it.
std::string own_job(const char* name) { return std::string(name) + std::to_string(getpid()); }

TEST(LaunchSlotTest, ASlotIsTakenOnce) {
  const std::string job = own_job("once");
  EXPECT_TRUE(take_launch_slot(job, "0").ok());
  EXPECT_TRUE(take_launch_slot(job, "1").ok());
  const base::Status again = take_launch_slot(job, "0");
  EXPECT_EQ(again.code(), base::StatusCode::kUnsupported);
  EXPECT_NE(again.message().find("one launch is one Weft job"), std::string_view::npos) << again.to_string();
}

TEST(LaunchSlotTest, LongNamesDiffer) {
  const std::string job = own_job("long") + std::string(300, 'x');
  EXPECT_TRUE(take_launch_slot(job + "a", "0").ok());
  EXPECT_TRUE(take_launch_slot(job + "b", "0").ok());
  EXPECT_TRUE(take_launch_slot(job + "b", "1").ok());
  EXPECT_FALSE(take_launch_slot(job + "b", "0").ok());
}

TEST(LaunchSlotTest, ItIsHeldUntilTheProcessEnds) {
  const std::string job = own_job("life");
  const pid_t child = fork();
  if (child == 0) _exit(take_launch_slot(job, "0").ok() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(take_launch_slot(job, "0").ok());
}

}  // namespace
}  // namespace weft::machine::bootstrap
