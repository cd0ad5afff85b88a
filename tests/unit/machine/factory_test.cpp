#include "machine/factory/factory.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace weft::machine {
namespace {

class FactoryTest : public ::testing::Test {
 protected:
  FactoryTest() { TearDown(); }
  void TearDown() override {
    unsetenv("WEFT_MACHINE");
    unsetenv("WEFT_STAGING");
  }
};

TEST_F(FactoryTest, TheEnvironmentDecides) {
  const MachineOptions defaults = MachineOptions::from_environment().value();
  EXPECT_EQ(defaults.name, "ucx");
  EXPECT_EQ(defaults.staging, StagingMode::kDevice);
  setenv("WEFT_MACHINE", "loopback", 1);
  setenv("WEFT_STAGING", "host", 1);
  const MachineOptions options = MachineOptions::from_environment().value();
  EXPECT_EQ(options.name, "loopback");
  EXPECT_EQ(options.staging, StagingMode::kHost);
  setenv("WEFT_STAGING", "device", 1);
  EXPECT_EQ(MachineOptions::from_environment().value().staging, StagingMode::kDevice);
}

TEST_F(FactoryTest, AStagingModeThatIsNoneIsRefused) {
  for (const char* value : {"", "Host", "yes", "device,host"}) {
    setenv("WEFT_STAGING", value, 1);
    const base::Status status = MachineOptions::from_environment().status();
    EXPECT_EQ(status.code(), base::StatusCode::kInvalidArgument);
    EXPECT_NE(status.message().find("is neither 'device' (the default) nor 'host'"), status.message().npos);
  }
}

}  // namespace
}  // namespace weft::machine
