// Kind cuda on a real device: what the fake driver of tests/unit/memory cannot vouch for.
#include <algorithm>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#include "memory/copy/staging_pool.h"
#include "memory/kinds/cuda/cuda_driver.h"
#include "tests/gpu/gpu_test.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class GpuMemoryTest : public GpuTest {
 protected:
  void expect_moves(Place from, Place to) {
    for (const std::size_t size_bytes :
         {std::size_t{1}, std::size_t{4097}, StagingPool::kChunkBytes + 1, std::size_t{64} << 20}) {
      const auto bytes = pattern(size_bytes, 5);
      std::vector<unsigned char> result(size_bytes);
      const Buffer source = make(size_bytes, from);
      const Buffer destination = make(size_bytes, to);
      move(source, ConstBuffer(bytes.data(), size_bytes));
      move(destination, source);
      move(host_buffer(result), destination);
      EXPECT_EQ(result == bytes, true)
          << size_bytes << " bytes from " << place_name(from) << " to " << place_name(to);
    }
  }
};

TEST_F(GpuMemoryTest, NamesItsDevices) {
  for (int device = 0; device < cuda().num_devices(); ++device) {
    std::printf("cuda:%d is %s\n", device, cuda().device_name(device).c_str());
    EXPECT_NE(cuda().device_name(device), "unknown CUDA device");
  }
}

TEST_F(GpuMemoryTest, MovesBytesBetweenAllPlaces) {
  expect_moves(kHostPlace, kGpu0);
  expect_moves(kGpu0, kGpu0);
  expect_moves(kGpu0, kDevice0);
  expect_moves(kDevice0, kGpu0);
}

TEST_F(GpuMemoryTest, MovesBytesBetweenTwoGpus) {
  if (cuda().num_devices() < 2) GTEST_SKIP() << "needs two GPUs, there is one";
  expect_moves(kGpu0, kGpu1);
  expect_moves(kGpu1, kGpu0);
}

TEST_F(GpuMemoryTest, PageLockedMemoryIsKnownAsHostMemory) {
  auto locked = cuda().allocate_host(1 << 20, 0);
  ASSERT_TRUE(locked.ok()) << locked.status().to_string();
  EXPECT_EQ(memory.place_of(*locked), kHostPlace);
  EXPECT_TRUE(cuda().host_copy_is_async(*locked, 1 << 20));
  std::vector<unsigned char> ordinary(1 << 20);
  EXPECT_FALSE(cuda().host_copy_is_async(ordinary.data(), ordinary.size()));
  const Buffer device = make(1 << 20, kGpu0);
  std::fill_n(static_cast<unsigned char*>(*locked), 1 << 20, 9);
  move(device, ConstBuffer(*locked, 1 << 20));
  move(host_buffer(ordinary), device);
  EXPECT_EQ(ordinary, std::vector<unsigned char>(1 << 20, 9));
  cuda().deallocate_host(*locked);
}

TEST_F(GpuMemoryTest, PlaceOfKnowsEveryByteOfAnAllocation) {
  const Buffer buffer = make(3 << 20, kGpu0);
  auto* const data = static_cast<std::byte*>(buffer.data);
  int on_stack = 0;
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(memory.place_of(data), kGpu0);
    EXPECT_EQ(memory.place_of(data + (3 << 20) - 1), kGpu0);
    EXPECT_EQ(memory.place_of(&on_stack), kHostPlace);
    EXPECT_EQ(memory.place_of(nullptr), kHostPlace);
  }
  const Allocation allocation = memory.allocation_of(data + 12345);
  EXPECT_EQ(allocation.base, reinterpret_cast<std::uintptr_t>(data));
  EXPECT_EQ(allocation.size_bytes, std::size_t{3} << 20);
  EXPECT_NE(allocation.generation, 0u);
}

TEST_F(GpuMemoryTest, PlaceOfWorksOnAThreadWithoutAContext) {
  const Buffer buffer = make(4096, kGpu0);
  Place first;
  Place second;
  std::thread([&] {
    first = memory.place_of(buffer.data);
    second = memory.place_of(buffer.data);  // from the cache, with the driver's confirmation
  }).join();
  EXPECT_EQ(first, kGpu0);
  EXPECT_EQ(second, kGpu0);
}

TEST_F(GpuMemoryTest, MemoryFreedBehindOurBackIsForgotten) {
  auto driver = CudaDriver::load("libcuda.so.1");
  ASSERT_TRUE(driver.ok());
  CudaContext context = nullptr;
  ASSERT_EQ((*driver)->DevicePrimaryCtxRetain(&context, 0), cuda::kSuccess);
  bool reused = false;
  {
    CudaContextScope scope(**driver, context);
    for (int i = 0; i < 100; ++i) {
      CudaAddress first = 0;
      ASSERT_EQ((*driver)->MemAlloc(&first, 32 << 20), cuda::kSuccess);
      const Allocation before = memory.allocation_of(reinterpret_cast<void*>(first));
      EXPECT_EQ(before.place, kGpu0);
      ASSERT_EQ((*driver)->MemFree(first), cuda::kSuccess);
      EXPECT_EQ(memory.place_of(reinterpret_cast<void*>(first)), kHostPlace);
      CudaAddress second = 0;
      ASSERT_EQ((*driver)->MemAlloc(&second, 32 << 20), cuda::kSuccess);
      const Allocation after = memory.allocation_of(reinterpret_cast<void*>(second));
      EXPECT_EQ(after.place, kGpu0);
      EXPECT_NE(after.generation, before.generation);
      reused |= first == second;
      ASSERT_EQ((*driver)->MemFree(second), cuda::kSuccess);
    }
  }
  EXPECT_EQ((*driver)->DevicePrimaryCtxRelease(0), cuda::kSuccess);
  EXPECT_TRUE(reused) << "the driver never gave an address twice, so this test showed less than it should";
}

TEST_F(GpuMemoryTest, TheThreadsContextIsLeftAlone) {
  auto driver = CudaDriver::load("libcuda.so.1");
  ASSERT_TRUE(driver.ok());
  make(64, kGpu0);  // where none was current, ours is from now on
  CudaContext before = nullptr;
  ASSERT_EQ((*driver)->CtxGetCurrent(&before), cuda::kSuccess);
  std::vector<unsigned char> bytes(64);
  move(make(64, kGpu0), host_buffer(bytes));
  CudaContext after = nullptr;
  ASSERT_EQ((*driver)->CtxGetCurrent(&after), cuda::kSuccess);
  EXPECT_NE(before, nullptr);
  EXPECT_EQ(before, after);
}

TEST_F(GpuMemoryTest, NothingBlocksOnABusyStream) {
  const Buffer device = make(1 << 20, kGpu0);
  const StreamHandle stream = cuda().create_stream(0).value();
  std::vector<unsigned char> into(1 << 20);
  std::vector<unsigned char> from(1 << 20, 3);
  std::vector<unsigned char> other(1 << 20);
  move(device, host_buffer(from));  // makes the page-locked memory, which may wait for the device
  Outcome read;
  Outcome write;
  Outcome done;
  Outcome free_copy;
  std::vector<Outcome> crowd(50);
  StreamGate gate;
  gate.block(stream);
  Buffer busy = device;
  busy.stream = stream;
  ASSERT_TRUE(memory.copy(host_buffer(into), busy, &read).is_pending());
  ASSERT_TRUE(memory.copy(busy, host_buffer(from), &write).is_pending());
  for (Outcome& outcome : crowd) ASSERT_TRUE(memory.copy(busy, host_buffer(from), &outcome).is_pending());
  ASSERT_TRUE(memory.when_stream_done(kGpu0, stream, &done).is_pending());
  ASSERT_TRUE(memory.copy(host_buffer(other), device, &free_copy).is_pending());
  poll_until([&] { return free_copy.calls == 1; }, "the copy that waits for nothing");
  EXPECT_EQ(other, from);
  EXPECT_EQ(read.calls + write.calls + done.calls, 0) << "the busy stream was not waited for";
  gate.open();
  poll_until_idle();
  for (const Outcome* outcome : {&read, &write, &done}) {
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_TRUE(outcome->status.ok()) << outcome->status.to_string();
  }
  for (const Outcome& outcome : crowd) EXPECT_EQ(outcome.calls, 1);
  EXPECT_EQ(into, from);
  EXPECT_TRUE(cuda().destroy_stream(stream).ok());
}

// Streams of one GPU that order copies by words alone. Each wait is queued ahead of its signal.
TEST_F(GpuMemoryTest, StreamsSignalOneAnother) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  constexpr std::uint32_t kLast = 20;
  constexpr std::uint32_t kFirst = std::uint32_t{0} - kLast / 2;  // the counters pass 2^32
  const Buffer words = make(8, kGpu0);
  const Buffer source = make(kBytes, kGpu0);
  const Buffer target = make(kBytes, kGpu0);
  const Buffer seen = make(kBytes, kGpu0);
  const StreamHandle sender = cuda().create_stream(0).value();
  const StreamHandle receiver = cuda().create_stream(0).value();
  auto* const ready = static_cast<std::uint32_t*>(words.data);
  std::uint32_t* const credit = ready + 1;
  std::vector<std::uint32_t> start(2, kFirst - 1);
  move(words, host_buffer(start));
  for (std::uint32_t round = kFirst; round != kFirst + kLast; ++round) {
    const auto bytes = pattern(kBytes, round);
    std::vector<unsigned char> result(kBytes);
    move(source, ConstBuffer(bytes.data(), kBytes));
    Outcome received;
    Outcome sent;
    ASSERT_TRUE(cuda().queue_wait(ready, kGpu0, round, receiver).ok());
    ASSERT_TRUE(cuda().copy_async(seen.data, kGpu0, target.data, kGpu0, kBytes, receiver).ok());
    ASSERT_TRUE(cuda().queue_write(credit, kGpu0, round, receiver).ok());
    ASSERT_TRUE(memory.when_queued_done(kGpu0, receiver, &received).is_pending());
    for (int i = 0; i < 100; ++i) memory.progress();
    EXPECT_EQ(received.calls, 0) << "the wait did not hold the stream";
    ASSERT_TRUE(cuda().copy_async(target.data, kGpu0, source.data, kGpu0, kBytes, sender).ok());
    ASSERT_TRUE(cuda().queue_write(ready, kGpu0, round, sender).ok());
    ASSERT_TRUE(cuda().queue_wait(credit, kGpu0, round, sender).ok());
    ASSERT_TRUE(memory.when_queued_done(kGpu0, sender, &sent).is_pending());
    finish(received);
    finish(sent);
    move(host_buffer(result), seen);
    EXPECT_EQ(result == bytes, true) << "round " << round;
  }
  EXPECT_TRUE(cuda().destroy_stream(sender).ok());
  EXPECT_TRUE(cuda().destroy_stream(receiver).ok());
}

TEST_F(GpuMemoryTest, DefaultStreamHandles) {
  const Buffer device = make(64, kGpu0);
  std::vector<unsigned char> from(64, 4);
  for (const std::uintptr_t handle : {1, 2}) {
    Buffer buffer = device;
    buffer.stream = reinterpret_cast<StreamHandle>(handle);
    std::vector<unsigned char> into(64);
    move(buffer, host_buffer(from));
    move(host_buffer(into), buffer);
    EXPECT_EQ(into, from);
  }
}

TEST_F(GpuMemoryTest, ThousandsInFlight) {
  constexpr std::size_t kCount = 5000;
  const Buffer device = make(kCount * 8, kGpu0);
  const auto bytes = pattern(kCount * 8, 2);
  std::vector<Outcome> outcomes(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const Buffer to{static_cast<std::byte*>(device.data) + i * 8, 8, kGpu0, nullptr};
    ASSERT_TRUE(memory.copy(to, ConstBuffer(bytes.data() + i * 8, 8), &outcomes[i]).is_pending());
  }
  poll_until_idle();
  for (const Outcome& outcome : outcomes) ASSERT_EQ(outcome.calls, 1);
  std::vector<unsigned char> result(kCount * 8);
  move(host_buffer(result), device);
  EXPECT_EQ(result, bytes);
}

// More copies take longer, by the device's clock. All are queued before the first one starts, so the host's speed does not count.
TEST_F(GpuMemoryTest, TimedEventsMeasureTheDevice) {
  constexpr std::size_t kCopyBytes = std::size_t{64} << 20;
  const Buffer from = make(kCopyBytes, kGpu0);
  const Buffer to = make(kCopyBytes, kGpu0);
  const StreamHandle stream = cuda().create_stream(0).value();
  const auto record = [&] { return cuda().record_timed(stream, 0).value(); };
  const auto copy = [&](int times) {
    for (int i = 0; i < times; ++i)
      EXPECT_TRUE(cuda().copy_async(to.data, kGpu0, from.data, kGpu0, kCopyBytes, stream).ok());
  };
  copy(1);  // the first use of a device takes longer
  StreamGate gate;
  gate.block(stream);
  const EventHandle first = record();
  copy(2);
  const EventHandle second = record();
  copy(20);
  const EventHandle last = record();
  double short_s = -1;
  double long_s = -1;
  EXPECT_TRUE(cuda().elapsed(first, last, long_s).is_pending());
  gate.open();
  Outcome outcome;
  ASSERT_TRUE(memory.when_event_done(kGpu0, last, &outcome).is_pending());
  finish(outcome);
  EXPECT_TRUE(cuda().elapsed(first, second, short_s).ok());
  EXPECT_TRUE(cuda().elapsed(second, last, long_s).ok());
  EXPECT_GT(short_s, 0);
  EXPECT_GT(long_s, 2 * short_s);
  for (const EventHandle event : {first, second, last}) cuda().release_event(event);
  EXPECT_TRUE(cuda().destroy_stream(stream).ok());
  const EventHandle on_default = cuda().record_timed(cuda().default_stream(), 0).value();
  Outcome default_done;
  ASSERT_TRUE(memory.when_event_done(kGpu0, on_default, &default_done).is_pending());
  finish(default_done);
  cuda().release_event(on_default);
}

TEST_F(GpuMemoryTest, CloseWaitsForTheDevice) {
  const Buffer device = make(64 << 20, kGpu0);
  std::vector<unsigned char> bytes(64 << 20);
  std::vector<Outcome> outcomes(8);
  for (Outcome& outcome : outcomes)
    ASSERT_TRUE(memory.copy(host_buffer(bytes), device, &outcome).is_pending());
  memory.close();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
  }
}

TEST_F(GpuMemoryTest, OutOfMemoryIsAStatus) {
  const Status status = memory.allocate(std::size_t{1} << 46, kGpu0).status();
  EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.to_string();
  make(64, kGpu0);
}

}  // namespace
}  // namespace weft::memory
