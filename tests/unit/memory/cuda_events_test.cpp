// Events of kind cuda with a time, over the fake driver.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_backend.h"
#include "tests/unit/memory/fake_cuda.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

constexpr Place kGpu{Kind::kCuda, 1};

class CudaEventsTest : public ::testing::Test {
 protected:
  CudaEventsTest() {
    fake_cuda_reset();
    auto driver = CudaDriver::load(FAKE_CUDA);
    EXPECT_TRUE(driver.ok()) << driver.status().to_string();
    backend = std::make_unique<CudaBackend>(std::move(*driver));
    data = backend->allocate(64, kGpu.device).value();
    stream = backend->create_stream(kGpu.device).value();
  }
  void TearDown() override {
    EXPECT_TRUE(backend->destroy_stream(stream).ok());  // does what is queued
    EXPECT_TRUE(backend->deallocate(data).ok());
    backend.reset();
    EXPECT_EQ(fake_cuda()->wrong_context_calls, 0);
    EXPECT_TRUE(fake_cuda()->events.empty()) << "events leaked";
  }

  EventHandle record() { return backend->record_timed(stream, kGpu.device).value(); }
  // Each takes a millisecond of the fake device.
  void copy(int times) {
    for (int i = 0; i < times; ++i) EXPECT_TRUE(backend->copy_async(data, kGpu, data, kGpu, 8, stream).ok());
  }
  void finish(EventHandle event) {
    Status status = Status::pending();
    for (int i = 0; i < 100 && status.is_pending(); ++i) status = backend->query(event);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

  std::unique_ptr<CudaBackend> backend;
  void* data = nullptr;
  StreamHandle stream = nullptr;
};

TEST_F(CudaEventsTest, MeasureTheDevicesTimeBetweenThem) {
  copy(5);
  const EventHandle begin = record();
  copy(3);
  const EventHandle end = record();
  copy(7);
  double seconds = -1;
  EXPECT_TRUE(backend->elapsed(begin, end, seconds).is_pending());
  EXPECT_EQ(fake_cuda()->now_ms, 0) << "asking for the time makes no progress";
  finish(begin);
  EXPECT_TRUE(backend->elapsed(begin, end, seconds).is_pending());
  finish(end);
  EXPECT_TRUE(backend->elapsed(begin, end, seconds).ok());
  EXPECT_NEAR(seconds, 0.003, 1e-9);
  backend->release_event(begin);
  backend->release_event(end);
}

TEST_F(CudaEventsTest, AreReusedApartFromThoseWithoutATime) {
  for (int i = 0; i < 10; ++i) {
    const EventHandle begin = record();
    const EventHandle plain = backend->record(stream, kGpu.device).value();
    const EventHandle end = record();
    finish(end);
    double seconds = -1;
    EXPECT_TRUE(backend->elapsed(begin, end, seconds).ok());
    EXPECT_EQ(seconds, 0);
    for (const EventHandle event : {begin, plain, end}) backend->release_event(event);
  }
  EXPECT_EQ(fake_cuda()->calls["cuEventCreate"], 3);
}

TEST_F(CudaEventsTest, MayBeReleasedBeforeTheyAreDone) {
  const EventHandle begin = record();
  copy(1);
  const EventHandle end = record();
  backend->release_event(begin);
  backend->release_event(end);
  const EventHandle next = record();
  finish(next);
  backend->release_event(next);
  EXPECT_EQ(fake_cuda()->calls["cuEventCreate"], 2);
}

TEST_F(CudaEventsTest, TheDefaultStreamIsTheLegacyOne) {
  EXPECT_EQ(backend->default_stream(), cuda::kLegacyStream);
  const EventHandle event = backend->record_timed(backend->default_stream(), kGpu.device).value();
  finish(event);
  backend->release_event(event);
}

TEST_F(CudaEventsTest, FailuresSayWhatAndWhere) {
  fake_cuda()->fail_next["cuEventCreate"] = 2;
  EXPECT_EQ(backend->record_timed(stream, kGpu.device).status().code(), StatusCode::kOutOfMemory);
  EXPECT_TRUE(backend->record_timed(stream, 0).status().failed()) << "a stream of another device";
  EXPECT_EQ(backend->record_timed(stream, 2).status().code(), StatusCode::kOutOfRange);
  const EventHandle begin = record();
  const EventHandle end = record();
  finish(end);
  double seconds = -1;
  fake_cuda()->broken = 700;
  const Status broken = backend->elapsed(begin, end, seconds);
  EXPECT_NE(broken.message().find("cuEventElapsedTime: cuda:1"), std::string::npos) << broken.to_string();
  fake_cuda()->broken = 0;
  const EventHandle plain = backend->record(stream, kGpu.device).value();
  finish(plain);
  EXPECT_TRUE(backend->elapsed(begin, plain, seconds).failed()) << "an event without a time";
  EXPECT_EQ(seconds, -1);
  for (const EventHandle event : {begin, plain, end}) backend->release_event(event);
}

}  // namespace
}  // namespace weft::memory
