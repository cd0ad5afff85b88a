#include "base/host_number.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::base {
namespace {

// The exit code of a child: whether its number is this process's, or 2 where the system allows no namespaces.
int child_sees(std::uint64_t number, int namespaces) {
  const pid_t child = fork();
  if (child == 0) {
    if (namespaces != 0 && unshare(CLONE_NEWUSER | namespaces) != 0) _exit(2);
    _exit(host_number() == number ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

TEST(HostNumberTest, IsTheSameInAllProcessesOfAHost) {
  EXPECT_NE(host_number(), 0U);
  EXPECT_EQ(host_number(), host_number());
  EXPECT_EQ(child_sees(host_number(), 0), 1);
}

TEST(HostNumberTest, DiffersWhereTheNetworkDiffers) {
  const int seen = child_sees(host_number(), CLONE_NEWNET);
  if (seen == 2) GTEST_SKIP() << "NOT TESTED: this system allows no user namespaces";
  EXPECT_EQ(seen, 0);
}

}  // namespace
}  // namespace weft::base
