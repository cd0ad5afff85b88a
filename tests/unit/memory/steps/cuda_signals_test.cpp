// Streams of kind cuda that tell one another by words, over the stand-in driver. An import of this process's own memory stands
// for that of another one.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_backend.h"
#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class CudaSignalsTest : public FakeCudaTest {
 protected:
  static std::uint32_t* word(const Buffer& buffer) { return static_cast<std::uint32_t*>(buffer.data); }
  void poll(int times = 100) {
    for (int i = 0; i < times; ++i) memory->progress();
  }
};

TEST_F(CudaSignalsTest, AStreamOfAPeersDeviceSignalsAnother) {
  const Buffer own = memory->allocate(64, kGpu0).value();
  const auto exported = cuda().export_allocation(own.data).value();
  const Buffer imported = cuda().import_allocation(exported, 1).value();
  const StreamHandle waits = cuda().create_stream(0).value();
  const StreamHandle writes = cuda().create_stream(1).value();
  const std::uint32_t values[] = {0xffffffffU, 2};
  for (const std::uint32_t value : values) {
    ASSERT_TRUE(cuda().queue_wait(word(own), kGpu0, value, waits).ok());
    Outcome over;
    ASSERT_TRUE(memory->when_queued_done(kGpu0, waits, &over).is_pending());
    poll();
    // A word of 0 is past 0xffffffff, as counters that wrap are.
    EXPECT_EQ(over.calls, value == 2 ? 0 : 1);
    ASSERT_TRUE(cuda().queue_write(word(imported), kGpu1, value, writes).ok());
    Outcome sent;
    ASSERT_TRUE(memory->when_queued_done(kGpu1, writes, &sent).is_pending());
    poll();
    EXPECT_EQ(sent.calls, 1);
    EXPECT_EQ(over.calls, 1);
    EXPECT_TRUE(over.status.ok()) << over.status.to_string();
    EXPECT_EQ(*word(own), value);
  }
  EXPECT_TRUE(cuda().destroy_stream(waits).ok());
  EXPECT_TRUE(cuda().destroy_stream(writes).ok());
  EXPECT_TRUE(cuda().release_import(imported.data).ok());
  EXPECT_TRUE(memory->deallocate(own).ok());
}

// A capture of the stream may contain the launches, and no query, event or allocation.
TEST_F(CudaSignalsTest, OneLaunchEach) {
  const Buffer own = memory->allocate(4, kGpu0).value();
  const StreamHandle stream = cuda().create_stream(0).value();
  ASSERT_TRUE(cuda().prepare_steps(0).ok());
  EXPECT_FALSE(cuda().is_capturing(stream, 0));
  static_cast<::CudaStreamTag*>(stream)->is_captured = true;
  fake_cuda()->calls.clear();
  EXPECT_TRUE(cuda().is_capturing(stream, 0));
  EXPECT_FALSE(cuda().is_capturing(nullptr, 0));
  EXPECT_FALSE(cuda().is_capturing(stream, 9));
  ASSERT_TRUE(cuda().queue_write(word(own), kGpu0, 1, stream).ok());
  ASSERT_TRUE(cuda().queue_wait(word(own), kGpu0, 1, stream).ok());
  for (const auto& [call, count] : fake_cuda()->calls) {
    const bool is_allowed = call == "cuLaunchKernel" || call == "cuStreamIsCapturing" ||
                            call == "cuCtxGetCurrent" || call == "cuCtxSetCurrent";
    EXPECT_TRUE(is_allowed) << call << " " << count;
  }
  EXPECT_EQ(fake_cuda()->calls["cuLaunchKernel"], 2);
  EXPECT_TRUE(cuda().destroy_stream(stream).ok());
  EXPECT_TRUE(memory->deallocate(own).ok());
}

TEST_F(CudaSignalsTest, WhatTheDriverRefusesIsNamed) {
  const Buffer own = memory->allocate(4, kGpu0).value();
  ASSERT_TRUE(cuda().prepare_steps(0).ok());
  fake_cuda()->fail_next["cuLaunchKernel"] = 1;
  const Status refused = cuda().queue_wait(word(own), kGpu0, 7, nullptr);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("cuLaunchKernel: a step on cuda:0"), std::string::npos)
      << refused.to_string();
  EXPECT_EQ(cuda().queue_write(word(own), {Kind::kCuda, 9}, 1, nullptr).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(memory->deallocate(own).ok());
}

TEST_F(CudaSignalsTest, AnOldDriverHasNone) {
  auto driver = CudaDriver::load(FAKE_CUDA);
  ASSERT_TRUE(driver.ok());
  (*driver)->LaunchKernel = nullptr;
  CudaBackend old(std::move(*driver));
  std::uint32_t unused = 0;
  for (const Status& status :
       {old.queue_write(&unused, kGpu0, 1, nullptr), old.queue_wait(&unused, kGpu0, 1, nullptr)}) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("cannot load kernels"), std::string::npos) << status.to_string();
  }
  EXPECT_EQ(fake_cuda()->calls["cuDevicePrimaryCtxRetain"], 0);
}

TEST_F(CudaSignalsTest, AWaitWithoutASignalEndsWithTheJob) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = FAKE_CUDA;
  options.device_timeout = std::chrono::milliseconds(1);
  auto impatient = std::make_unique<Memory>(options);
  KindBackend& kind = *impatient->backend(Kind::kCuda);
  const Buffer own = impatient->allocate(64, kGpu0).value();
  const StreamHandle stream = kind.create_stream(0).value();
  ASSERT_TRUE(kind.queue_wait(word(own), kGpu0, 1, stream).ok());
  Outcome over;
  ASSERT_TRUE(impatient->when_queued_done(kGpu0, stream, &over).is_pending());
  impatient->close();
  EXPECT_EQ(over.status.code(), StatusCode::kClosed);
  EXPECT_NE(impatient->hang().message().find("has ended its steps"), std::string::npos);
  EXPECT_EQ(*word(own), 0U);
  EXPECT_TRUE(kind.destroy_stream(stream).ok());
  EXPECT_TRUE(impatient->deallocate(own).ok());
  EXPECT_EQ(fake_cuda()->calls["cuMemFree"], 1);
}

}  // namespace
}  // namespace weft::memory
