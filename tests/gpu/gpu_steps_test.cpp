// Steps on a real device: what the driver makes of the text of step_kernels.cpp.
#include "tests/gpu/gpu_steps.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace weft::memory {
namespace {

using base::Status;
using base::StatusCode;

// Words of the receiver's memory, by number, and of the sender's.
enum : std::size_t { kArrived, kReceived, kLanding, kTotal };
enum : std::size_t { kSent, kCredit, kNext, kOne, kNumWords };

class GpuStepsTest : public GpuStepTest {
 protected:
  // A sender sends 0, 1, 2 ..., and a receiver adds up what it gets. All is in the memory of two devices, or of one.
  struct Pair {
    Place from;
    Place to;
    Buffer sender;
    Buffer receiver;
    StreamHandle sends = nullptr;
    StreamHandle receives = nullptr;

    DeviceStep send() const {
      DeviceStep step;
      step.count = word(sender, kSent);
      step.before.add({word(sender, kCredit), 0});
      step.to = bytes(receiver, kLanding);
      step.from = bytes(sender, kNext);
      step.size_bytes = sizeof(std::uint32_t);
      step.signals.add({word(receiver, kArrived), 1});
      step.reduction = sum(sender, kNext, kOne);
      return step;
    }
    DeviceStep receive() const {
      DeviceStep step;
      step.count = word(receiver, kReceived);
      step.signals.add({word(sender, kCredit), 0});
      step.after.add({word(receiver, kArrived), 1});
      step.reduction = sum(receiver, kTotal, kLanding);
      return step;
    }
  };
  Pair make_pair(Place from, Place to, std::uint32_t first) {
    Pair pair{from, to, make(kNumWords * 4, from), make(kNumWords * 4, to), nullptr, nullptr};
    pair.sends = cuda().create_stream(from.device).value();
    pair.receives = cuda().create_stream(to.device).value();
    std::vector<std::uint32_t> sender{first, first - 1, 0, 1};
    std::vector<std::uint32_t> receiver{first, first, 0, 0};
    move(pair.sender, host_buffer(sender));
    move(pair.receiver, host_buffer(receiver));
    for (const Place place : {from, to}) {
      EXPECT_TRUE(cuda().prepare_reductions(place.device, ElementType::kInt32, Combination::kSum).ok());
    }
    return pair;
  }
  void expect_sent(const Pair& pair, std::uint32_t first, std::uint32_t rounds) {
    Outcome sent;
    Outcome received;
    ASSERT_TRUE(memory.when_queued_done(pair.from, pair.sends, &sent).is_pending());
    ASSERT_TRUE(memory.when_queued_done(pair.to, pair.receives, &received).is_pending());
    finish(sent);
    finish(received);
    EXPECT_EQ(read(pair.sender), (std::vector<std::uint32_t>{first + rounds, first + rounds - 1, rounds, 1}));
    EXPECT_EQ(read(pair.receiver), (std::vector<std::uint32_t>{first + rounds, first + rounds, rounds - 1,
                                                               rounds * (rounds - 1) / 2}));
  }
  void destroy_streams(const Pair& pair) {
    EXPECT_TRUE(cuda().destroy_stream(pair.sends).ok());
    EXPECT_TRUE(cuda().destroy_stream(pair.receives).ok());
  }
  void expect_loop(Place from, Place to) {
    constexpr std::uint32_t kRounds = 200;
    for (const std::uint32_t first : {0U, std::uint32_t{0} - kRounds / 2}) {  // counters pass 2^32
      const Pair pair = make_pair(from, to, first);
      for (std::uint32_t round = 0; round < kRounds; ++round) {
        ASSERT_TRUE(cuda().queue_step(pair.send(), from, pair.sends).ok());
        ASSERT_TRUE(cuda().queue_step(pair.receive(), to, pair.receives).ok());
      }
      expect_sent(pair, first, kRounds);
      destroy_streams(pair);
    }
  }
};

TEST_F(GpuStepsTest, ALoopOfSendsAndReceives) { expect_loop(kGpu0, kGpu0); }

TEST_F(GpuStepsTest, ALoopBetweenTwoGpus) {
  if (!has_two_gpus()) GTEST_SKIP() << "needs two GPUs with peer access";
  expect_loop(kGpu0, kGpu1);
  expect_loop(kGpu1, kGpu0);
}

TEST_F(GpuStepsTest, AGraphCountsOnAtEachLaunch) {
  constexpr std::uint32_t kLaunches = 100;
  Graphs graphs;
  ASSERT_TRUE(graphs.are_there());
  const Pair pair = make_pair(kGpu0, kGpu0, 0);
  const Status with_current = cuda().with_current(0, [&] {
    const auto captured = [&](const DeviceStep& step, StreamHandle stream) {
      return graphs.capture(stream, [&] {
        const Status queued = cuda().queue_step(step, kGpu0, stream);
        EXPECT_TRUE(queued.ok()) << queued.to_string();
        DeviceStep with_product = step;
        with_product.reduction.combination = Combination::kProduct;
        EXPECT_EQ(cuda().queue_step(with_product, kGpu0, stream).code(), StatusCode::kUnsupported)
            << "its kernel is not loaded";
      });
    };
    void* const sends = captured(pair.send(), pair.sends);
    void* const receives = captured(pair.receive(), pair.receives);
    for (std::uint32_t i = 0; i < kLaunches; ++i) {
      EXPECT_EQ(graphs.launch(sends, pair.sends), 0);
      EXPECT_EQ(graphs.launch(receives, pair.receives), 0);
    }
    expect_sent(pair, 0, kLaunches);
    graphs.destroy(sends);
    graphs.destroy(receives);
  });
  EXPECT_TRUE(with_current.ok()) << with_current.to_string();
  destroy_streams(pair);
}

// All data of a step is there when its signal is: the receiver copies it on at once. Several steps are in one launch.
TEST_F(GpuStepsTest, DataIsBehindNoSignal) {
  constexpr std::size_t kBytes = (std::size_t{64} << 10) + 12;
  constexpr std::uint32_t kRounds = 50;
  const Buffer words = make(16, kGpu0);
  const Buffer source = make(kBytes * kRounds, kGpu0);
  const Buffer landing = make(kBytes, kGpu0);
  const Buffer seen = make(kBytes * kRounds, kGpu0);
  std::vector<std::uint32_t> zeros(4);
  const auto sent = pattern(kBytes * kRounds, 3);
  move(words, host_buffer(zeros));
  move(source, ConstBuffer(sent.data(), sent.size()));
  const StreamHandle sends = cuda().create_stream(0).value();
  const StreamHandle receives = cuda().create_stream(0).value();
  std::vector<DeviceStep> all_sends;
  std::vector<DeviceStep> all_receives;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    DeviceStep send;
    send.before.add({word(words, 1), round});
    send.to = static_cast<std::byte*>(landing.data);
    send.from = static_cast<const std::byte*>(source.data) + round * kBytes;
    send.size_bytes = kBytes;
    send.signals.add({word(words, 0), round + 1});
    all_sends.push_back(send);
    DeviceStep receive;
    receive.before.add({word(words, 0), round + 1});
    receive.to = static_cast<std::byte*>(seen.data) + round * kBytes;
    receive.from = static_cast<const std::byte*>(landing.data);
    receive.size_bytes = kBytes;
    receive.signals.add({word(words, 1), round + 1});
    all_receives.push_back(receive);
  }
  ASSERT_TRUE(cuda().queue_steps(all_sends, kGpu0, sends).ok());
  ASSERT_TRUE(cuda().queue_steps(all_receives, kGpu0, receives).ok());
  Outcome received;
  ASSERT_TRUE(memory.when_queued_done(kGpu0, receives, &received).is_pending());
  finish(received);
  std::vector<unsigned char> result(sent.size());
  move(host_buffer(result), seen);
  EXPECT_EQ(result == sent, true);
  for (const StreamHandle stream : {sends, receives}) EXPECT_TRUE(cuda().destroy_stream(stream).ok());
}

// Each copy has a slot of its own, between bytes that it must not touch.
TEST_F(GpuStepsTest, CopiesOfAllAlignments) {
  struct Case {
    std::size_t size_bytes;
    std::size_t to;
    std::size_t from;
  };
  constexpr std::size_t kAlignments = 18;
  constexpr std::size_t kLarge = (std::size_t{1} << 20) + 5;
  std::vector<Case> cases;
  for (std::size_t size_bytes = 0; size_bytes <= 100; ++size_bytes) {
    for (std::size_t to = 0; to < kAlignments; ++to)
      for (std::size_t from = 0; from < kAlignments; ++from) cases.push_back({size_bytes, to, from});
  }
  for (const auto& [to, from] :
       {std::pair<std::size_t, std::size_t>{0, 0}, {1, 1}, {0, 8}, {4, 0}, {2, 0}, {0, 3}, {17, 1}}) {
    cases.push_back({kLarge, to, from});
  }
  const auto slot_bytes = [](const Case& wanted) { return (wanted.size_bytes + 63) / 16 * 16; };
  std::size_t all_bytes = 0;
  for (const Case& wanted : cases) all_bytes += slot_bytes(wanted);
  const auto from_bytes = pattern(kLarge + kAlignments, 7);
  std::vector<unsigned char> expected(all_bytes, 0xa5);
  const Buffer source = make(from_bytes.size(), kGpu0);
  const Buffer target = make(all_bytes, kGpu0);
  move(source, ConstBuffer(from_bytes.data(), from_bytes.size()));
  move(target, host_buffer(expected));
  const StreamHandle stream = cuda().create_stream(0).value();
  std::size_t slot = 0;
  for (const Case& wanted : cases) {
    DeviceStep step;
    step.to = static_cast<std::byte*>(target.data) + slot + wanted.to;
    step.from = static_cast<const std::byte*>(source.data) + wanted.from;
    step.size_bytes = wanted.size_bytes;
    ASSERT_TRUE(cuda().queue_step(step, kGpu0, stream).ok());
    std::copy_n(from_bytes.begin() + static_cast<std::ptrdiff_t>(wanted.from), wanted.size_bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(slot + wanted.to));
    slot += slot_bytes(wanted);
  }
  Outcome copied;
  ASSERT_TRUE(memory.when_queued_done(kGpu0, stream, &copied).is_pending());
  finish(copied);
  std::vector<unsigned char> result(all_bytes);
  move(host_buffer(result), target);
  slot = 0;
  for (const Case& wanted : cases) {
    const auto begin = static_cast<std::ptrdiff_t>(slot);
    slot += slot_bytes(wanted);
    ASSERT_TRUE(std::equal(result.begin() + begin, result.begin() + static_cast<std::ptrdiff_t>(slot),
                           expected.begin() + begin))
        << wanted.size_bytes << " bytes from alignment " << wanted.from << " to " << wanted.to;
  }
  EXPECT_TRUE(cuda().destroy_stream(stream).ok());
}

// What both streams of a pair do ends, and nothing has been done.
TEST_F(GpuStepsTest, StepsThatAreAborted) {
  const Pair pair = make_pair(kGpu0, kGpu0, 0);
  const std::vector<std::uint32_t> before = read(pair.sender);
  DeviceStep send = pair.send();
  send.before.items[0].offset = 5;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(cuda().queue_step(send, kGpu0, pair.sends).ok());
  Outcome sent;
  ASSERT_TRUE(memory.when_queued_done(kGpu0, pair.sends, &sent).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(sent.calls, 0);
  memory.abort_steps();
  poll_until([&] { return sent.calls == 1; }, "a step that was aborted");
  EXPECT_EQ(sent.status.code(), StatusCode::kClosed);
  ASSERT_TRUE(cuda().queue_step(send, kGpu0, pair.sends).ok());
  Outcome later;
  ASSERT_TRUE(memory.when_queued_done(kGpu0, pair.sends, &later).is_pending());
  poll_until([&] { return later.calls == 1; }, "a step that was queued after the abort");
  EXPECT_EQ(read(pair.sender), before);
  EXPECT_EQ(read(pair.receiver), (std::vector<std::uint32_t>{0, 0, 0, 0}));
  destroy_streams(pair);
}

TEST_F(GpuStepsTest, TheEndOfAJobEndsAWaitWithoutASignal) {
  MemoryOptions options;
  options.device_timeout = std::chrono::milliseconds(1);
  Memory impatient(options);
  KindBackend& kind = *impatient.backend(Kind::kCuda);
  const Buffer words = make(4, kGpu0);
  std::vector<std::uint32_t> zero(1);
  move(words, host_buffer(zero));
  const StreamHandle stream = kind.create_stream(0).value();
  ASSERT_TRUE(kind.queue_wait(word(words, 0), kGpu0, 1, stream).ok());
  Outcome over;
  ASSERT_TRUE(impatient.when_queued_done(kGpu0, stream, &over).is_pending());
  impatient.close();
  EXPECT_EQ(over.status.code(), StatusCode::kClosed);
  EXPECT_NE(impatient.hang().message().find("has ended its steps"), std::string::npos)
      << impatient.hang().to_string();
  EXPECT_TRUE(kind.destroy_stream(stream).ok());
}

}  // namespace
}  // namespace weft::memory
