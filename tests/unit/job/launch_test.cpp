#include "job/launch.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "weft/job/job.h"

namespace weft::job {
namespace {

class LaunchAlone : public ::testing::Test {
 protected:
  void SetUp() override { setenv("WEFT_BOOTSTRAP", "singleton", 1); }
  void TearDown() override { unsetenv("WEFT_BOOTSTRAP"); }
};

TEST_F(LaunchAlone, IsPeZeroOfOne) {
  Launch launch = Launch::join();
  EXPECT_EQ(launch.pe(), 0);
  EXPECT_EQ(launch.num_pes(), 1);
  EXPECT_EQ(launch.exchange("a text"), std::vector<std::string>{"a text"});
  EXPECT_EQ(launch.exchange(""), std::vector<std::string>{""});
  launch.leave(0);
}

TEST_F(LaunchAlone, BecomesAJob) {
  setenv("WEFT_MACHINE", "loopback", 1);
  Job job({}, Launch::join());
  unsetenv("WEFT_MACHINE");
  EXPECT_EQ(job.runtime().num_pes(), 1);
  job.runtime().exit(7);
  EXPECT_EQ(job.run(), 7);
}

}  // namespace
}  // namespace weft::job
