// Streams that tell one another by words, on emulated devices of two memories, as two processes have them.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/unit/memory/outcome.h"
#include "tests/unit/memory/places.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

class StreamSignalsTest : public ::testing::Test {
 protected:
  StreamSignalsTest()
      : own(owner.allocate(64, kDevice0).value()),
        exported(emulated(owner).export_allocation(own.data).value()),
        imported(emulated(peer).import_allocation(exported, 0).value()) {}
  ~StreamSignalsTest() override {
    for (Memory* memory : {&owner, &peer}) memory->close();
  }

  static EmulatedBackend& emulated(Memory& memory) { return testing::emulated(memory); }
  static StreamHandle make_stream(Memory& memory) { return emulated(memory).create_stream(0).value(); }
  static std::uint32_t* word(const Buffer& buffer) { return static_cast<std::uint32_t*>(buffer.data); }
  static void watch(Memory& memory, StreamHandle stream, Outcome& outcome) {
    ASSERT_TRUE(memory.when_queued_done(kDevice0, stream, &outcome).is_pending());
  }
  void poll(int times = 100) {
    for (int i = 0; i < times; ++i) {
      owner.progress();
      peer.progress();
    }
  }

  Memory owner;
  Memory peer;
  Buffer own;
  std::vector<std::byte> exported;
  Buffer imported;
};

TEST_F(StreamSignalsTest, AWaitSeesWhatWasWrittenBeforeTheSignal) {
  const StreamHandle waits = make_stream(owner);
  const StreamHandle writes = make_stream(peer);
  Outcome over;
  Outcome sent;
  std::uint32_t seen = 0;
  ASSERT_TRUE(emulated(owner).queue_wait(word(own), kDevice0, 3, waits).ok());
  const auto look = [&] {
    std::memcpy(&seen, static_cast<std::byte*>(emulated(owner).device_view(own.data, 8).value()) + 4,
                sizeof seen);
    return Status();
  };
  ASSERT_TRUE(emulated(owner).launch(waits, 0, look).ok());
  watch(owner, waits, over);
  poll();
  EXPECT_EQ(over.calls, 0);
  EXPECT_TRUE(owner.has_pending()) << "the PE would sleep";
  const std::uint32_t data = 77;
  ASSERT_TRUE(emulated(peer).queue_write(word(imported), kDevice0, 2, writes).ok());
  watch(peer, writes, sent);
  poll();
  EXPECT_EQ(sent.calls, 1);
  EXPECT_EQ(over.calls, 0) << "2 is not 3";
  ASSERT_TRUE(
      emulated(peer).copy_async(word(imported) + 1, kDevice0, &data, kHostPlace, sizeof data, writes).ok());
  ASSERT_TRUE(emulated(peer).queue_write(word(imported), kDevice0, 4, writes).ok());
  Outcome second;
  watch(peer, writes, second);
  poll();
  EXPECT_EQ(over.calls, 1);
  EXPECT_TRUE(over.status.ok()) << over.status.to_string();
  EXPECT_EQ(seen, 77U);
}

TEST_F(StreamSignalsTest, TheComparisonIsCyclic) {
  for (const auto& [now, value, is_reached] : {std::tuple{0U, 0U, true},
                                               {5U, 4U, true},
                                               {4U, 5U, false},
                                               {2U, 0xfffffffeU, true},
                                               {0xfffffffeU, 2U, false},
                                               {0x7fffffffU, 0U, true},
                                               {0x80000000U, 0U, false}}) {
    EXPECT_EQ(has_reached(now, value), is_reached) << now << " " << value;
  }
  const StreamHandle stream = make_stream(owner);
  ASSERT_TRUE(emulated(owner).queue_write(word(own), kDevice0, 0xffffffffU, stream).ok());
  ASSERT_TRUE(emulated(owner).queue_wait(word(own), kDevice0, 0xfffffff0U, stream).ok());
  Outcome before;
  watch(owner, stream, before);
  ASSERT_TRUE(emulated(owner).queue_wait(word(own), kDevice0, 1, stream).ok());
  Outcome behind;
  watch(owner, stream, behind);
  poll();
  EXPECT_EQ(before.calls, 1);
  EXPECT_EQ(behind.calls, 0) << "the counter is two steps short of 1";
  const StreamHandle other = make_stream(owner);
  ASSERT_TRUE(emulated(owner).queue_write(word(own), kDevice0, 1, other).ok());
  poll();
  EXPECT_EQ(behind.calls, 1);
}

TEST_F(StreamSignalsTest, AFreedWordFailsWithItsReason) {
  const StreamHandle waits = make_stream(owner);
  const StreamHandle writes = make_stream(peer);
  ASSERT_TRUE(emulated(owner).queue_wait(word(own), kDevice0, 1, waits).ok());
  ASSERT_TRUE(emulated(peer).queue_write(word(imported), kDevice0, 1, writes).ok());
  ASSERT_TRUE(owner.deallocate(own).ok());
  Outcome wait;
  Outcome write;
  watch(owner, waits, wait);
  watch(peer, writes, write);
  poll();
  EXPECT_EQ(wait.status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(wait.status.message().find("word of a signal"), std::string::npos) << wait.status.to_string();
  EXPECT_NE(wait.status.message().find("was freed while"), std::string::npos) << wait.status.to_string();
  EXPECT_NE(write.status.message().find("which has freed it"), std::string::npos) << write.status.to_string();
}

TEST_F(StreamSignalsTest, WordsThatAreNone) {
  EmulatedBackend& kind = emulated(owner);
  std::uint32_t on_host = 0;
  EXPECT_EQ(kind.queue_write(&on_host, kDevice0, 1, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(kind.queue_wait(word(own), kDevice1, 1, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(kind.queue_wait(word(own) + 16, kDevice0, 1, nullptr).code(), StatusCode::kInvalidArgument);
  const Buffer odd = owner.allocate(6, kDevice0).value();
  EXPECT_EQ(kind.queue_write(word(odd) + 1, kDevice0, 1, nullptr).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(owner.deallocate(odd).ok());
  KindBackend& host = *owner.backend(Kind::kHost);
  for (const Status& status : {host.queue_write(&on_host, kHostPlace, 1, nullptr),
                               host.queue_wait(&on_host, kHostPlace, 1, nullptr)}) {
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_NE(status.message().find("cannot signal one another"), std::string::npos) << status.to_string();
  }
}

TEST_F(StreamSignalsTest, TheDevicesOwnStreamIsWaitedFor) {
  ASSERT_TRUE(emulated(owner).queue_wait(word(own), kDevice0, 1, nullptr).ok());
  Outcome over;
  watch(owner, nullptr, over);
  poll();
  EXPECT_EQ(over.calls, 0);
  ASSERT_TRUE(emulated(peer).queue_write(word(imported), kDevice0, 1, nullptr).ok());
  Outcome sent;
  watch(peer, nullptr, sent);
  poll();
  EXPECT_EQ(over.calls, 1);
}

// The memory of the work is freed afterwards.
TEST_F(StreamSignalsTest, CloseWaitsForQueuedWork) {
  Memory memory;
  int polls = 0;
  const StreamHandle stream =
      testing::stream_with(emulated(memory), 0, [&] { return ++polls < 50 ? Status::pending() : Status(); });
  Outcome over;
  watch(memory, stream, over);
  memory.close();
  EXPECT_EQ(polls, 50);
  EXPECT_EQ(over.calls, 1);
  EXPECT_TRUE(over.status.ok()) << over.status.to_string();
  EXPECT_TRUE(memory.hang().ok());
  EXPECT_EQ(memory.when_queued_done(kDevice0, stream, &over).code(), StatusCode::kClosed);
  EXPECT_EQ(memory.when_queued_done({Kind::kEmulated, 99}, stream, &over).code(), StatusCode::kOutOfRange);
}

TEST_F(StreamSignalsTest, AWaitWithoutASignalEndsWithASentence) {
  MemoryOptions options;
  options.device_timeout = std::chrono::milliseconds(1);
  Memory memory(options);
  const Buffer buffer = memory.allocate(4, kDevice0).value();
  const StreamHandle stream = make_stream(memory);
  ASSERT_TRUE(emulated(memory).queue_wait(word(buffer), kDevice0, 1, stream).ok());
  Outcome over;
  watch(memory, stream, over);
  memory.close();
  EXPECT_EQ(over.calls, 1);
  EXPECT_EQ(over.status.code(), StatusCode::kClosed);
  EXPECT_NE(over.status.message().find("the end of the job has ended a step"), std::string::npos)
      << over.status.to_string();
  EXPECT_NE(memory.hang().message().find("waits for a signal that no PE sends"), std::string::npos);
  EXPECT_NE(memory.hang().message().find("has ended its steps"), std::string::npos);
  EXPECT_TRUE(memory.deallocate(buffer).ok());
}

TEST_F(StreamSignalsTest, DevicesThatOnlyWaitAreNotGivenTheTimeOfDevicesThatWork) {
  MemoryOptions options;
  options.device_timeout = std::chrono::hours(10);
  Memory memory(options);
  const Buffer buffer = memory.allocate(4, kDevice0).value();
  const StreamHandle stream = make_stream(memory);
  const StreamHandle busy = make_stream(memory);
  // Work that is longer than kSignalTimeout, and gives the signal.
  const auto end = std::chrono::steady_clock::now() + kSignalTimeout + std::chrono::milliseconds(300);
  const auto work = [end] { return std::chrono::steady_clock::now() < end ? Status::pending() : Status(); };
  ASSERT_TRUE(emulated(memory).launch(busy, 0, work).ok());
  ASSERT_TRUE(emulated(memory).queue_write(word(buffer), kDevice0, 1, busy).ok());
  ASSERT_TRUE(emulated(memory).queue_wait(word(buffer), kDevice0, 1, stream).ok());
  Outcome signalled;
  watch(memory, stream, signalled);
  ASSERT_TRUE(emulated(memory).queue_wait(word(buffer), kDevice0, 2, stream).ok());
  Outcome over;
  watch(memory, stream, over);
  memory.close();
  EXPECT_TRUE(signalled.status.ok()) << signalled.status.to_string();
  EXPECT_EQ(over.status.code(), StatusCode::kClosed);
  EXPECT_NE(memory.hang().message().find("has ended its steps"), std::string::npos);
  EXPECT_TRUE(memory.deallocate(buffer).ok());
}

// Nothing is waited for, so the long timeout of the memory does not matter.
TEST_F(StreamSignalsTest, AFailedJobEndsItsWaitsAtOnce) {
  const StreamHandle stream = make_stream(owner);
  ASSERT_TRUE(emulated(owner).queue_wait(word(own), kDevice0, 1, stream).ok());
  Outcome over;
  watch(owner, stream, over);
  owner.abort_steps();
  owner.close();
  EXPECT_EQ(over.calls, 1);
  EXPECT_EQ(over.status.code(), StatusCode::kClosed);
  EXPECT_TRUE(owner.hang().ok());
}

}  // namespace
}  // namespace weft::memory
