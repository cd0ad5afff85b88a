// This test program contains a function of the CUDA runtime, as one does that is linked with the library.
// memory_test.cpp has the program without.
#include "memory/kinds/cuda/cuda_runtime.h"

#include "gtest/gtest.h"

extern "C" int cudaGetDevice(int* device) {
  *device = 0;
  return 0;
}

namespace weft::memory {
namespace {

TEST(CudaRuntime, IsFoundInTheProgram) { EXPECT_TRUE(contains_cuda_runtime()); }

}  // namespace
}  // namespace weft::memory
