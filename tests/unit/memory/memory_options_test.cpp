#include "memory/kinds/memory_options.h"

#include <cstdlib>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/emulated/emulated_options.h"
#include "memory/memory.h"

namespace weft::memory {
namespace {

using base::StatusCode;

class OptionsFromEnvironmentTest : public ::testing::Test {
 protected:
  OptionsFromEnvironmentTest() { TearDown(); }
  void TearDown() override {
    unsetenv("WEFT_GPUS");
    unsetenv("WEFT_EMULATED_FAULTS");
  }
};

TEST_F(OptionsFromEnvironmentTest, DefaultsToAllGpusAndNoFaults) {
  const MemoryOptions options = MemoryOptions::from_environment(3).value();
  EXPECT_EQ(options.local_rank, 3);
  EXPECT_EQ(options.of<CudaOptions>().driver, CudaOptions().driver);
  EXPECT_TRUE(options.of<CudaOptions>().devices.empty());
  EXPECT_EQ(options.of<EmulatedOptions>().faults.fail_copy, 0u);
}

TEST_F(OptionsFromEnvironmentTest, TheEnvironmentDecides) {
  setenv("WEFT_GPUS", "2,0,13", 1);
  setenv("WEFT_EMULATED_FAULTS", "fail_copy=7", 1);
  const MemoryOptions options = MemoryOptions::from_environment(0).value();
  EXPECT_EQ(options.of<CudaOptions>().devices, (std::vector<int>{2, 0, 13}));
  EXPECT_EQ(options.of<EmulatedOptions>().faults.fail_copy, 7u);
  setenv("WEFT_GPUS", "auto", 1);
  EXPECT_TRUE(MemoryOptions::from_environment(0).value().of<CudaOptions>().devices.empty());
}

TEST_F(OptionsFromEnvironmentTest, NoneIsNoCuda) {
  MemoryOptions options;
  ASSERT_TRUE(options.of<CudaOptions>().set_gpus("none").ok());
  Memory memory(options);
  EXPECT_EQ(memory.backend(Kind::kCuda), nullptr);
  EXPECT_EQ(memory.availability(Kind::kCuda).message(), "cuda memory is switched off (WEFT_GPUS=none)");
}

TEST_F(OptionsFromEnvironmentTest, RefusesWhatIsNoList) {
  for (const char* text : {"", ",", "0,", ",1", "0;1", "0 1", "-1", "1.5", "all", "0,x", "99999", "0,,1"}) {
    MemoryOptions options;
    const base::Status status = options.of<CudaOptions>().set_gpus(text);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(text), status.message().npos);
  }
  setenv("WEFT_GPUS", "GPU-1", 1);
  EXPECT_EQ(MemoryOptions::from_environment(0).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(OptionsFromEnvironmentTest, RefusesFaultsThatAreNone) {
  setenv("WEFT_EMULATED_FAULTS", "fail_everything=1", 1);
  const base::Status status = MemoryOptions::from_environment(0).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(status.message().starts_with("WEFT_EMULATED_FAULTS: 'fail_everything=1' is no fault"))
      << status.message();
}

TEST_F(OptionsFromEnvironmentTest, PesTakeTurnsOnTheDevices) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = "";
  options.of<EmulatedOptions>().num_devices = 3;
  options.local_rank = 4;
  Memory memory(options);
  EXPECT_EQ(memory.default_place(Kind::kEmulated), (Place{Kind::kEmulated, 1}));
  EXPECT_EQ(memory.default_place(Kind::kEmulated, 2), (Place{Kind::kEmulated, 2}));
  EXPECT_EQ(memory.default_place(Kind::kHost), Place());
}

TEST_F(OptionsFromEnvironmentTest, AListOfGpusNeedsGpus) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = "libweft-there-is-no-such-driver.so.1";
  options.of<CudaOptions>().devices = {0};
  const base::Status status = Memory(options).check_options();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_TRUE(
      status.message().starts_with("--gpus (WEFT_GPUS) names device 0: this process cannot use cuda memory"))
      << status.message();
}

}  // namespace
}  // namespace weft::memory
