// Copies of Memory between every pair of places over the kinds of a machine without a GPU: their order behind
// streams, and how they end.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

#include "memory/memory.h"
#include "tests/support/busy_stream.h"
#include "tests/unit/memory/memory_fixture.h"

namespace weft::memory {
namespace {

using testing::behind;
using testing::stream_with;
using testing::until;

struct Pair {
  Place source;
  Place destination;
};

class MemoryCopyTest : public MemoryTest, public ::testing::WithParamInterface<Pair> {};

TEST_P(MemoryCopyTest, MovesTheBytesAndNothingElse) {
  for (const std::size_t size_bytes :
       {std::size_t{1}, std::size_t{8}, std::size_t{4097}, std::size_t{1} << 20}) {
    const auto bytes = pattern(size_bytes, 3);
    const Buffer source = make(size_bytes, GetParam().source);
    const Buffer whole = make(size_bytes + 16, GetParam().destination);
    fill(source, bytes);
    fill(whole, std::vector<unsigned char>(size_bytes + 16, 0xee));
    Buffer middle = whole;
    middle.data = static_cast<std::byte*>(whole.data) + 8;
    middle.size_bytes = size_bytes;
    move(middle, source);

    const auto result = read(whole);
    EXPECT_EQ(std::vector<unsigned char>(result.begin() + 8, result.end() - 8), bytes);
    EXPECT_EQ(std::vector<unsigned char>(result.begin(), result.begin() + 8),
              std::vector<unsigned char>(8, 0xee));
    EXPECT_EQ(std::vector<unsigned char>(result.end() - 8, result.end()),
              std::vector<unsigned char>(8, 0xee));
  }
}

TEST_P(MemoryCopyTest, IsNeverDoneInsideTheCall) {
  const Buffer source = make(64, GetParam().source);
  const Buffer destination = make(64, GetParam().destination);
  Outcome outcome;
  ASSERT_TRUE(memory.copy(destination, source, &outcome).is_pending());
  EXPECT_EQ(outcome.calls, 0);
  EXPECT_TRUE(memory.has_pending());
  poll_until_idle(memory);
  EXPECT_EQ(outcome.calls, 1);
}

TEST_P(MemoryCopyTest, ZeroBytesComplete) {
  Outcome outcome;
  ASSERT_TRUE(memory
                  .copy(Buffer{nullptr, 0, GetParam().destination, nullptr},
                        ConstBuffer(nullptr, 0, GetParam().source), &outcome)
                  .is_pending());
  EXPECT_EQ(outcome.calls, 0);
  poll_until_idle(memory);
  EXPECT_EQ(outcome.calls, 1);
  EXPECT_TRUE(outcome.status.ok());
}

TEST_P(MemoryCopyTest, ThousandsInFlightCompleteOnceEach) {
  constexpr std::size_t kCount = 3000;
  const Buffer source = make(kCount * 8, GetParam().source);
  const Buffer destination = make(kCount * 8, GetParam().destination);
  const auto bytes = pattern(kCount * 8, 11);
  fill(source, bytes);
  std::vector<Outcome> outcomes(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    const Buffer to{static_cast<std::byte*>(destination.data) + i * 8, 8, destination.place, nullptr};
    const ConstBuffer from(static_cast<std::byte*>(source.data) + i * 8, 8, source.place);
    ASSERT_TRUE(memory.copy(to, from, &outcomes[i]).is_pending());
  }
  poll_until_idle(memory);
  for (const Outcome& outcome : outcomes) {
    ASSERT_EQ(outcome.calls, 1);
    ASSERT_TRUE(outcome.status.ok());
  }
  EXPECT_EQ(read(destination), bytes);
}

TEST_P(MemoryCopyTest, CloseEndsEachCopyOnce) {
  const Buffer source = make(1 << 20, GetParam().source);
  const Buffer destination = make(1 << 20, GetParam().destination);
  std::vector<Outcome> outcomes(20);
  for (Outcome& outcome : outcomes) ASSERT_TRUE(memory.copy(destination, source, &outcome).is_pending());
  memory.close();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
  }
  EXPECT_FALSE(memory.has_pending());
  Outcome late;
  EXPECT_EQ(memory.copy(destination, source, &late).code(), StatusCode::kClosed);
  EXPECT_EQ(late.calls, 0);
}

INSTANTIATE_TEST_SUITE_P(Places, MemoryCopyTest,
                         ::testing::Values(Pair{kHostPlace, kHostPlace}, Pair{kHostPlace, kDevice0},
                                           Pair{kDevice0, kHostPlace}, Pair{kDevice0, kDevice0},
                                           Pair{kDevice0, kDevice1}),
                         [](const auto& param_info) {
                           std::string name = place_name(param_info.param.source) + "_to_" +
                                              place_name(param_info.param.destination);
                           for (char& c : name) c = c == ':' ? '_' : c;
                           return name;
                         });

TEST_F(MemoryTest, LongHostCopiesLeaveRoomBetweenPolls) {
  const Buffer source = make(20 << 20, kHostPlace);
  const Buffer destination = make(20 << 20, kHostPlace);
  const auto bytes = pattern(20 << 20, 9);
  std::copy(bytes.begin(), bytes.end(), static_cast<unsigned char*>(source.data));
  Outcome outcome;
  ASSERT_TRUE(memory.copy(destination, source, &outcome).is_pending());
  EXPECT_TRUE(memory.progress());
  EXPECT_EQ(outcome.calls, 0) << "20 MiB in one poll";
  poll_until_idle(memory);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), static_cast<unsigned char*>(destination.data)));
}

TEST_F(MemoryTest, CopyComesAfterTheSourcesStream) {
  const Buffer device = make(64, kDevice0);
  fill(device, std::vector<unsigned char>(64, 1));
  bool go = false;
  const auto kernel = [&] {
    if (!go) return Status::pending();
    std::memset(emulated().device_view(device.data, 64).value(), 2, 64);
    return Status();
  };
  const Buffer produced = behind(emulated(), kernel, device);
  std::vector<unsigned char> bytes(64);
  Outcome outcome;
  ASSERT_TRUE(memory.copy(host_buffer(bytes), produced, &outcome).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(outcome.calls, 0) << "the copy did not wait for the kernel that makes its bytes";
  go = true;
  poll_until_idle(memory);
  EXPECT_TRUE(outcome.status.ok());
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 2));
}

TEST_F(MemoryTest, CopyComesAfterTheDestinationsStream) {
  const Buffer device = make(64, kDevice1);
  fill(device, std::vector<unsigned char>(64, 1));
  bool go = false;
  std::vector<unsigned char> seen(64);
  const auto kernel = [&] {
    if (!go) return Status::pending();
    std::memcpy(seen.data(), emulated().device_view(device.data, 64).value(), 64);
    return Status();
  };
  const Buffer consumed = behind(emulated(), kernel, device);
  std::vector<unsigned char> bytes(64, 7);
  Outcome outcome;
  ASSERT_TRUE(memory.copy(consumed, host_buffer(bytes), &outcome).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(outcome.calls, 0);
  go = true;
  poll_until_idle(memory);
  EXPECT_EQ(seen, std::vector<unsigned char>(64, 1)) << "overwritten under the kernel that reads it";
  EXPECT_EQ(read(device), bytes);
}

TEST_F(MemoryTest, ABusyStreamHoldsUpNeitherOtherCopiesNorItsOwnLaterWork) {
  const Buffer device = make(64, kDevice0);
  bool go = false;
  const Buffer busy = behind(emulated(), until(go), device);
  std::vector<unsigned char> bytes(64);
  Outcome waits;
  ASSERT_TRUE(memory.copy(host_buffer(bytes), busy, &waits).is_pending());

  Outcome other;
  std::vector<unsigned char> other_bytes(64);
  ASSERT_TRUE(memory.copy(host_buffer(other_bytes), device, &other).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(other.calls, 1);
  EXPECT_EQ(waits.calls, 0);
  go = true;
  poll_until_idle(memory);
  EXPECT_EQ(waits.calls, 1);
}

TEST_F(MemoryTest, HundredsOfCopiesBehindABusyStreamHoldUpNoOther) {
  const Buffer device = make(64, kDevice0);
  bool go = false;
  const Buffer busy = behind(emulated(), until(go), device);
  std::vector<unsigned char> bytes(64);
  std::vector<Outcome> waiting(300);
  for (Outcome& outcome : waiting) ASSERT_TRUE(memory.copy(host_buffer(bytes), busy, &outcome).is_pending());
  Buffer ready = device;
  ready.stream = emulated().create_stream(0).value();
  Outcome unnamed;
  Outcome named;
  ASSERT_TRUE(memory.copy(host_buffer(bytes), device, &unnamed).is_pending());
  ASSERT_TRUE(memory.copy(host_buffer(bytes), ready, &named).is_pending());
  for (int i = 0; i < 1000; ++i) memory.progress();
  EXPECT_EQ(unnamed.calls, 1);
  EXPECT_EQ(named.calls, 1);
  for (const Outcome& outcome : waiting) EXPECT_EQ(outcome.calls, 0);
  go = true;
  poll_until_idle(memory);
  for (const Outcome& outcome : waiting) EXPECT_TRUE(outcome.calls == 1 && outcome.status.ok());
}

TEST_F(MemoryTest, CloseEndsCopiesBehindABusyStreamOnce) {
  const Buffer device = make(64, kDevice0);
  int polls = 0;
  const auto kernel = [&] { return ++polls < 50 ? Status::pending() : Status(); };
  const Buffer busy = behind(emulated(), kernel, device);
  std::vector<unsigned char> bytes(64);
  std::vector<Outcome> waiting(100);
  for (Outcome& outcome : waiting) ASSERT_TRUE(memory.copy(host_buffer(bytes), busy, &outcome).is_pending());
  memory.progress();
  memory.close();
  EXPECT_FALSE(memory.progress());
  for (const Outcome& outcome : waiting) {
    EXPECT_EQ(outcome.calls, 1);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed);
  }
}

TEST_F(MemoryTest, WhenStreamDone) {
  bool go = false;
  const StreamHandle stream = stream_with(emulated(), 0, until(go));
  Outcome before;
  Outcome null_stream;
  ASSERT_TRUE(memory.when_stream_done(kDevice0, stream, &before).is_pending());
  ASSERT_TRUE(memory.when_stream_done(kDevice0, nullptr, &null_stream).is_pending());
  EXPECT_EQ(null_stream.calls, 0);
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(null_stream.calls, 1);
  EXPECT_EQ(before.calls, 0);
  EXPECT_FALSE(memory.is_stream_idle(kDevice0, stream));
  EXPECT_TRUE(memory.is_stream_idle(kDevice0, nullptr));
  go = true;
  poll_until_idle(memory);
  EXPECT_EQ(before.calls, 1);
  EXPECT_TRUE(before.status.ok());
  EXPECT_TRUE(memory.is_stream_idle(kDevice0, stream));
  EXPECT_FALSE(memory.is_stream_idle({Kind::kEmulated, 99}, stream));

  Outcome closed;
  ASSERT_TRUE(memory.when_stream_done(kDevice0, stream, &closed).is_pending());
  memory.close();
  EXPECT_EQ(closed.calls, 1);
  EXPECT_EQ(closed.status.code(), StatusCode::kClosed);
}

// The event stays the caller's.
TEST_F(MemoryTest, WhenEventDone) {
  bool go = false;
  const StreamHandle stream = stream_with(emulated(), 0, until(go));
  const EventHandle event = emulated().record_timed(stream, 0).value();
  Outcome first;
  Outcome second;
  ASSERT_TRUE(memory.when_event_done(kDevice0, event, &first).is_pending());
  ASSERT_TRUE(memory.when_event_done(kDevice0, event, &second).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(first.calls + second.calls, 0);
  go = true;
  poll_until_idle(memory);
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 1);
  double seconds = -1;
  EXPECT_TRUE(emulated().elapsed(event, event, seconds).ok());
  EXPECT_EQ(seconds, 0);
  EXPECT_EQ(memory.when_event_done({Kind::kEmulated, 99}, event, &first).code(), StatusCode::kOutOfRange);

  go = false;
  ASSERT_TRUE(emulated().launch(stream, 0, until(go)).ok());
  const EventHandle never = emulated().record_timed(stream, 0).value();
  Outcome closed;
  ASSERT_TRUE(memory.when_event_done(kDevice0, never, &closed).is_pending());
  memory.close();
  EXPECT_EQ(closed.calls, 1);
  EXPECT_EQ(closed.status.code(), StatusCode::kClosed);
  EXPECT_EQ(memory.when_event_done(kDevice0, event, &second).code(), StatusCode::kClosed);
  emulated().release_event(event);
  emulated().release_event(never);
}

TEST_F(MemoryTest, AFailedKernelFailsTheWaitAndTheCopyBehindIt) {
  const Buffer device = make(64, kDevice0);
  const auto broken = [] { return Status(StatusCode::kInternal, "kernel went wrong"); };
  const Buffer produced = behind(emulated(), broken, device);
  Outcome wait;
  ASSERT_TRUE(memory.when_stream_done(kDevice0, produced.stream, &wait).is_pending());
  ASSERT_TRUE(emulated().launch(produced.stream, 0, broken).ok());
  std::vector<unsigned char> bytes(64, 5);
  Outcome copy;
  ASSERT_TRUE(memory.copy(host_buffer(bytes), produced, &copy).is_pending());
  poll_until_idle(memory);
  EXPECT_EQ(wait.status.message(), "kernel went wrong");
  EXPECT_EQ(copy.calls, 1);
  EXPECT_EQ(copy.status.message(), "kernel went wrong");
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 5)) << "garbage was copied";
}

TEST_F(MemoryTest, AFailingCopyFailsAloneAndOnce) {
  const Buffer device = make(64, kDevice0);
  EmulatedFaults faults;
  faults.fail_copy = 3;
  emulated().set_faults(faults);
  std::vector<unsigned char> bytes(64);
  std::vector<Outcome> outcomes(6);
  for (Outcome& outcome : outcomes)
    ASSERT_TRUE(memory.copy(device, host_buffer(bytes), &outcome).is_pending());
  poll_until_idle(memory);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].calls, 1);
    EXPECT_EQ(outcomes[i].status.ok(), i != 2) << "copy " << i << ": " << outcomes[i].status.to_string();
  }
  EXPECT_EQ(outcomes[2].size_bytes, 0u);
}

TEST_F(MemoryTest, ASlowDeviceIsWaitedForOneWayOrTheOther) {
  const Buffer device = make(64, kDevice0);
  EmulatedFaults faults;
  faults.polls_per_copy = 500;
  emulated().set_faults(faults);
  std::vector<unsigned char> bytes(64);
  Outcome polled;
  ASSERT_TRUE(memory.copy(device, host_buffer(bytes), &polled).is_pending());
  for (int i = 0; i < 499; ++i) memory.progress();
  EXPECT_EQ(polled.calls, 0);
  memory.progress();
  EXPECT_EQ(polled.calls, 1);

  const auto before = pattern(64, 1);
  std::vector<unsigned char> source = before;
  Outcome closed;
  ASSERT_TRUE(memory.copy(device, host_buffer(source), &closed).is_pending());
  memory.close();
  // The device must be done with `source` by now: overwriting it changes nothing any more.
  std::fill(source.begin(), source.end(), 0);
  EXPECT_EQ(closed.calls, 1);
  EXPECT_EQ(closed.status.code(), StatusCode::kClosed);
  EXPECT_EQ(0, std::memcmp(emulated().device_view(device.data, 64).value(), before.data(), 64));
}

TEST_F(MemoryTest, ABufferFreedUnderAPendingCopyIsReported) {
  const Buffer device = memory.allocate(64, kDevice0).value();
  std::vector<unsigned char> bytes(64, 9);
  Outcome write;
  Outcome read_back;
  ASSERT_TRUE(memory.copy(device, host_buffer(bytes), &write).is_pending());
  ASSERT_TRUE(memory.copy(host_buffer(bytes), device, &read_back).is_pending());
  ASSERT_TRUE(memory.deallocate(device).ok());
  // Something else at the very same address must not be touched.
  emulated().place_next_at(device.data);
  const Buffer other = make(64, kDevice0);
  ASSERT_EQ(other.data, device.data);
  poll_until_idle(memory);
  for (const Outcome* outcome : {&write, &read_back}) {
    EXPECT_EQ(outcome->calls, 1);
    EXPECT_EQ(outcome->status.code(), StatusCode::kInvalidArgument);
    EXPECT_NE(outcome->status.message().find("was freed while a stream had to use it"), std::string::npos)
        << outcome->status.to_string();
  }
  EXPECT_EQ(read(other), std::vector<unsigned char>(64, 0));
}

struct Chain : Outcome {
  explicit Chain(Memory& memory_in) : memory(memory_in) { function = &Chain::next; }
  static void next(base::Completion* self, Status status, std::size_t size_bytes) {
    auto* chain = static_cast<Chain*>(self);
    Outcome::record(self, std::move(status), size_bytes);
    if (--chain->left > 0) {
      EXPECT_TRUE(chain->memory.copy(chain->to, chain->from, chain).is_pending());
    }
  }
  Memory& memory;
  Buffer to;
  ConstBuffer from;
  int left = 0;
};

TEST_F(MemoryTest, ACompletionMayStartTheNextCopyOnItself) {
  std::vector<unsigned char> bytes(64);
  Chain chain(memory);
  chain.to = make(64, kDevice0);
  chain.from = host_buffer(bytes);
  chain.left = 10;
  ASSERT_TRUE(memory.copy(chain.to, chain.from, &chain).is_pending());
  poll_until_idle(memory);
  EXPECT_EQ(chain.calls, 10);
}

}  // namespace
}  // namespace weft::memory
