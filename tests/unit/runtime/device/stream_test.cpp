#include "weft/runtime/device/stream.h"

#include <gtest/gtest.h>

#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

constexpr memory::Place kStreamDevice{memory::Kind::kEmulated, 1};

struct StreamTest : ::testing::Test {
  testing::InProcessJob job{1};
  memory::EmulatedBackend& device = testing::emulated(job.memory(0));
  memory::StreamHandle stream = device.create_stream(kStreamDevice.device).value();
};

TEST_F(StreamTest, AKernelIsAwaitedWhileOthersRun) {
  int turns_of_others = 0;
  bool done = false;
  ASSERT_TRUE(device
                  .launch(stream, kStreamDevice.device,
                          [&] {
                            done = turns_of_others > 10;
                            return done ? Status() : Status::pending();
                          })
                  .ok());
  auto others = [&](Runtime& runtime) -> Task<> {
    while (!done) {
      ++turns_of_others;
      co_await runtime.sleep(0);
    }
  };
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    runtime.spawn(others(runtime), "others");
    co_await stream_done(runtime, kStreamDevice, stream);
    EXPECT_TRUE(done);
  }),
            "");
  EXPECT_GT(turns_of_others, 10);
}

TEST_F(StreamTest, WhatIsQueuedLaterIsNotWaitedFor) {
  bool never = false;
  Operation before = stream_done(job.runtime(0), kStreamDevice, stream);
  ASSERT_TRUE(
      device.launch(stream, kStreamDevice.device, [&] { return never ? Status() : Status::pending(); }).ok());
  Operation after = stream_done(job.runtime(0), kStreamDevice, stream);
  EXPECT_EQ(job.run_until([&] { return before.is_done(); }), "");
  EXPECT_FALSE(after.is_done());
  job.runtime(0).close();
  EXPECT_TRUE(after.is_done()) << "closing ends it";
}

TEST_F(StreamTest, AFailedKernelIsThrown) {
  ASSERT_TRUE(device
                  .launch(stream, kStreamDevice.device,
                          [] { return Status(StatusCode::kInternal, "the kernel divides by zero"); })
                  .ok());
  std::string message;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    try {
      co_await stream_done(runtime, kStreamDevice, stream);
    } catch (const Error& error) {
      message = error.what();
    }
  }),
            "");
  EXPECT_NE(message.find("divides by zero"), std::string::npos) << message;
}

TEST_F(StreamTest, APlaceThatIsNotThereIsRefused) {
  Operation operation = stream_done(job.runtime(0), {memory::Kind::kEmulated, 99}, stream);
  EXPECT_TRUE(operation.is_done());
  OperationState* state = std::move(operation).release();
  EXPECT_EQ(state->status().code(), StatusCode::kOutOfRange);
  state->observe();
  state->drop_handle();
}

}  // namespace
}  // namespace weft::runtime
