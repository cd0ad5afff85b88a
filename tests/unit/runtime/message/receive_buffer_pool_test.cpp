#include "runtime/message/receive_buffer_pool.h"

#include <gtest/gtest.h>

#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};

struct ReceiveBufferPoolTest : ::testing::Test {
  Attachment allocate(std::size_t size_bytes, memory::Place place = kDevice) {
    auto made = pool.allocate(size_bytes, place);
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    return made.ok() ? std::move(made).value() : Attachment();
  }
  void limit_device_to(std::size_t size_bytes) {
    memory::EmulatedFaults faults;
    faults.device_bytes = size_bytes;
    testing::emulated(job.memory(0)).set_faults(faults);
  }

  testing::InProcessJob job{1};
  ReceiveBufferPool pool{job.runtime(0)};
};

TEST_F(ReceiveBufferPoolTest, KeepsDeviceMemoryForReuseBySimilarSizes) {
  const void* first = allocate(100'000).buffer().data;
  EXPECT_GT(pool.kept_bytes(), 0u);
  Attachment again = allocate(99'000);
  EXPECT_EQ(again.buffer().data, first);
  EXPECT_EQ(again.buffer().size_bytes, 99'000u);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  EXPECT_NE(allocate(99'000).buffer().data, first) << "it is in use";
  EXPECT_EQ(job.memory(0).place_of(first), kDevice);
}

TEST_F(ReceiveBufferPoolTest, DevicesHaveBlocksOfTheirOwn) {
  const void* first = allocate(1000).buffer().data;
  Attachment other = allocate(1000, memory::Place{memory::Kind::kEmulated, 1});
  EXPECT_NE(other.buffer().data, first);
  EXPECT_EQ(job.memory(0).place_of(other.buffer().data).device, 1);
}

TEST_F(ReceiveBufferPoolTest, GivesUpWhatItKeepsWhenTheDeviceRunsShort) {
  limit_device_to(100'000);
  {
    Attachment kept = allocate(60'000);
  }
  EXPECT_GT(pool.kept_bytes(), 0u);
  Attachment larger = allocate(90'000);
  EXPECT_TRUE(larger);
  EXPECT_EQ(pool.kept_bytes(), 0u);
  auto refused = pool.allocate(90'000, kDevice);
  EXPECT_EQ(refused.status().code(), StatusCode::kOutOfMemory);
  EXPECT_NE(refused.status().message().find("emulated:0 memory for a buffer of 90000 bytes"),
            std::string_view::npos)
      << refused.status().message();
}

TEST_F(ReceiveBufferPoolTest, HostMemoryComesFromThePesOwnPool) {
  std::size_t before = job.runtime(0).pool().kept_bytes();
  {
    Attachment host = allocate(5000, {});
  }
  EXPECT_GT(job.runtime(0).pool().kept_bytes(), before);
  EXPECT_EQ(pool.kept_bytes(), 0u);
}

TEST_F(ReceiveBufferPoolTest, SizesThatNobodyHasAreRefused) {
  for (memory::Place place : {memory::Place{}, kDevice}) {
    EXPECT_EQ(pool.allocate(std::size_t{1} << 62, place).status().code(), StatusCode::kOutOfMemory);
  }
  EXPECT_EQ(pool.allocate(8, memory::Place{memory::Kind::kEmulated, 99}).status().code(),
            StatusCode::kOutOfMemory);
}

TEST_F(ReceiveBufferPoolTest, NothingTakesNoMemory) {
  Attachment empty = allocate(0);
  EXPECT_EQ(empty.buffer().size_bytes, 0u);
}

}  // namespace
}  // namespace weft::runtime
