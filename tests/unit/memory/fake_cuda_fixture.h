// A memory layer over the stand-in driver, which nothing may be left of at the end of a test.
#pragma once

#include <memory>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/memory.h"
#include "tests/unit/memory/fake_cuda.h"
#include "tests/unit/memory/outcome.h"

namespace weft::memory {

class FakeCudaTest : public ::testing::Test {
 protected:
  FakeCudaTest() {
    fake_cuda_reset();
    MemoryOptions options;
    options.of<CudaOptions>().driver = FAKE_CUDA;
    memory = std::make_unique<Memory>(options);
  }
  void TearDown() override {
    memory.reset();
    EXPECT_EQ(fake_cuda()->wrong_context_calls, 0);
    EXPECT_EQ(fake_cuda()->blocking_copies, 0) << "the driver would have blocked the CPU";
    EXPECT_TRUE(fake_cuda()->blocks.empty()) << "locked or device memory leaked";
  }

  KindBackend& cuda() { return *memory->backend(Kind::kCuda); }

  std::unique_ptr<Memory> memory;
};

}  // namespace weft::memory
