// Memory: what it refuses, what it gives, and which kinds it finds.
#include "memory/memory.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/cuda/cuda_runtime.h"
#include "memory/kinds/emulated/emulated_options.h"
#include "tests/unit/memory/memory_fixture.h"

namespace weft::memory {
namespace {

TEST(ProgramWithoutCudaRuntime, IsKnownAsOne) { EXPECT_FALSE(contains_cuda_runtime()); }

TEST_F(MemoryTest, WrongUseIsRefusedAtTheCall) {
  std::vector<unsigned char> bytes(64);
  const Buffer host = host_buffer(bytes);
  const Buffer device = make(64, kDevice0);
  Outcome outcome;
  const auto code = [&](const Buffer& to, const ConstBuffer& from) {
    return memory.copy(to, from, &outcome).code();
  };

  Buffer wrong = device;
  wrong.size_bytes = 63;
  EXPECT_EQ(code(wrong, host), StatusCode::kInvalidArgument) << "sizes";
  wrong = device;
  wrong.place.device = 7;
  EXPECT_EQ(code(wrong, host), StatusCode::kOutOfRange) << "device";
  wrong.place = kDevice1;
  EXPECT_EQ(code(wrong, host), StatusCode::kInvalidArgument) << "the place is not where the memory is";
  wrong = device;
  wrong.data = static_cast<std::byte*>(wrong.data) + 1;
  EXPECT_EQ(code(wrong, host), StatusCode::kOutOfRange) << "leaves the allocation";
  wrong = device;
  wrong.place = kHostPlace;
  EXPECT_EQ(code(device, wrong), StatusCode::kInvalidArgument) << "device memory said to be host";
  wrong = host;
  wrong.stream = reinterpret_cast<StreamHandle>(0x1234);
  EXPECT_EQ(code(device, wrong), StatusCode::kInvalidArgument) << "a stream on the host";
  wrong = device;
  wrong.stream = reinterpret_cast<StreamHandle>(0x1234);
  EXPECT_EQ(code(wrong, host), StatusCode::kInvalidArgument) << "no such stream";
  wrong = host;
  wrong.data = nullptr;
  EXPECT_EQ(code(device, wrong), StatusCode::kInvalidArgument) << "null";
  wrong = device;
  wrong.place = Place{Kind::kCuda, 0};
  EXPECT_EQ(code(wrong, host), StatusCode::kUnsupported) << "no cuda here";
  EXPECT_EQ(memory.allocate(8, Place{Kind::kCuda, 0}).status().code(), StatusCode::kUnsupported);

  EXPECT_FALSE(memory.has_pending());
  memory.progress();
  EXPECT_EQ(outcome.calls, 0);
}

TEST_F(MemoryTest, AllocationFailureIsAStatus) {
  EmulatedFaults faults;
  faults.fail_allocation = 2;
  faults.device_bytes = 1000;
  emulated().set_faults(faults);
  make(400, kDevice0);
  EXPECT_EQ(memory.allocate(400, kDevice0).status().code(), StatusCode::kOutOfMemory) << "told to fail";
  make(400, kDevice0);
  EXPECT_EQ(memory.allocate(400, kDevice0).status().code(), StatusCode::kOutOfMemory) << "device 0 is full";
  make(400, kDevice1);
  EXPECT_EQ(memory.allocate(SIZE_MAX, kHostPlace).status().code(), StatusCode::kOutOfMemory);
}

TEST_F(MemoryTest, ZeroBytesAreANullAddress) {
  for (const Place place : {kHostPlace, kDevice0}) {
    const Buffer empty = memory.allocate(0, place).value();
    EXPECT_EQ(empty.data, nullptr);
    EXPECT_TRUE(memory.deallocate(empty).ok());
  }
}

TEST(MemoryWithoutDriver, CudaIsAbsent) {
  MemoryOptions options;
  options.of<CudaOptions>().driver = "libweft-there-is-no-such-driver.so.1";
  Memory memory(options);
  EXPECT_EQ(memory.backend(Kind::kCuda), nullptr);
  EXPECT_NE(memory.backend(Kind::kHost), nullptr);
  EXPECT_NE(memory.backend(Kind::kEmulated), nullptr);
}

TEST(MemoryOptionsTest, EmulatedDevicesAndFaults) {
  MemoryOptions options;
  options.of<EmulatedOptions>().num_devices = 5;
  options.of<EmulatedOptions>().faults.fail_allocation = 1;
  Memory memory(options);
  ASSERT_EQ(memory.backend(Kind::kEmulated)->num_devices(), 5);
  EXPECT_EQ(memory.allocate(8, Place{Kind::kEmulated, 4}).status().code(), StatusCode::kOutOfMemory);
  const Buffer buffer = memory.allocate(8, Place{Kind::kEmulated, 4}).value();
  EXPECT_TRUE(memory.deallocate(buffer).ok());
}

}  // namespace
}  // namespace weft::memory
