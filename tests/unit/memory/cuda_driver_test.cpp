// Loading the CUDA driver where it is, where it is not, and where it is not one.
#include "memory/kinds/cuda/cuda_driver.h"

#include <string>

#include "gtest/gtest.h"

#include "tests/unit/memory/fake_cuda.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class CudaDriverTest : public ::testing::Test {
 protected:
  CudaDriverTest() { fake_cuda_reset(); }
};

TEST_F(CudaDriverTest, LoadsAndCountsDevices) {
  fake_cuda()->num_devices = 3;
  auto driver = CudaDriver::load(FAKE_CUDA);
  ASSERT_TRUE(driver.ok()) << driver.status().to_string();
  EXPECT_EQ((*driver)->num_devices(), 3);
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 0) << "loading must not make a context";
}

TEST_F(CudaDriverTest, NoLibrary) {
  const Status status = CudaDriver::load("libweft-there-is-no-such-driver.so.1").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("libweft-there-is-no-such-driver.so.1"), std::string::npos)
      << status.to_string();
}

TEST_F(CudaDriverTest, ALibraryThatIsNoDriver) {
  const Status status = CudaDriver::load("libm.so.6").status();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("cuInit"), std::string::npos) << status.to_string();
}

TEST_F(CudaDriverTest, InitialisationFails) {
  fake_cuda()->fail_next["cuInit"] = 2;
  const Status status = CudaDriver::load(FAKE_CUDA).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << status.to_string();
}

TEST_F(CudaDriverTest, NoDevice) {
  fake_cuda()->num_devices = 0;
  EXPECT_EQ(CudaDriver::load(FAKE_CUDA).status().code(), StatusCode::kNotFound);
  fake_cuda()->fail_next["cuDeviceGetCount"] = 100;
  EXPECT_TRUE(CudaDriver::load(FAKE_CUDA).status().failed());
}

TEST_F(CudaDriverTest, ResultsBecomeStatuses) {
  auto driver = CudaDriver::load(FAKE_CUDA);
  ASSERT_TRUE(driver.ok());
  EXPECT_TRUE((*driver)->status(cuda::kSuccess, "cuX").ok());
  EXPECT_TRUE((*driver)->status(cuda::kNotReady, "cuX").is_pending());
  EXPECT_EQ((*driver)->status(cuda::kInvalidValue, "cuX").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ((*driver)->status(cuda::kDeinitialized, "cuX").code(), StatusCode::kClosed);
  EXPECT_EQ((*driver)->status(cuda::kOutOfMemory, "cuMemAlloc", "8 bytes on cuda:1").to_string(),
            "out of memory: cuMemAlloc: 8 bytes on cuda:1: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)");
  const Status broken = (*driver)->status(700, "cuEventQuery", "cuda:0");
  EXPECT_EQ(broken.code(), StatusCode::kInternal);
  EXPECT_NE(broken.message().find("compute-sanitizer"), std::string::npos) << broken.to_string();
  EXPECT_EQ((*driver)->status(12345, "cuX").message(), "cuX: unknown error (12345, no description)");
}

TEST_F(CudaDriverTest, ContextScopeRestoresWhatWasCurrent) {
  auto driver = CudaDriver::load(FAKE_CUDA);
  ASSERT_TRUE(driver.ok());
  CudaContext first = nullptr;
  CudaContext second = nullptr;
  ASSERT_EQ((*driver)->DevicePrimaryCtxRetain(&first, 0), cuda::kSuccess);
  ASSERT_EQ((*driver)->DevicePrimaryCtxRetain(&second, 1), cuda::kSuccess);
  const auto current = [&] {
    CudaContext context = nullptr;
    EXPECT_EQ((*driver)->CtxGetCurrent(&context), cuda::kSuccess);
    return context;
  };
  {
    CudaContextScope outer(**driver, first);
    EXPECT_EQ(outer.result(), cuda::kSuccess);
    EXPECT_EQ(current(), first);
    {
      CudaContextScope inner(**driver, second);
      EXPECT_EQ(current(), second);
    }
    EXPECT_EQ(current(), first);
    const int switches = fake_cuda()->calls["cuCtxSetCurrent"];
    {
      CudaContextScope same(**driver, first);
    }
    EXPECT_EQ(fake_cuda()->calls["cuCtxSetCurrent"], switches) << "nothing to switch";
  }
  EXPECT_EQ(current(), nullptr);
  fake_cuda()->fail_next["cuCtxSetCurrent"] = 201;
  CudaContextScope failing(**driver, first);
  EXPECT_EQ(failing.result(), 201);
}

}  // namespace
}  // namespace weft::memory
