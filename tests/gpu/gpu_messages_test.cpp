// Messages on a real device: what the driver makes of the text of message_kernel.cpp.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "gtest/gtest.h"

#include "tests/gpu/gpu_steps.h"
#include "tests/unit/memory/steps/message_cases.h"
#include "tests/unit/memory/steps/ring_cases.h"

namespace weft::memory {
namespace {

class GpuMessagesTest : public GpuStepTest {
 protected:
  void expect_all(Place left, Place right) {
    expect_all_messages(memory, left, right, until);
    expect_rings(memory, left, right, until);
    expect_awaited_ring(memory, left, right, until);
  }
  const MessageRing::Until until = [this](const std::function<bool()>& holds) {
    poll_until(holds, "a message");
  };
};

TEST_F(GpuMessagesTest, OfAllSizes) { expect_all(kGpu0, kGpu0); }

TEST_F(GpuMessagesTest, BetweenTwoGpus) {
  if (!has_two_gpus()) GTEST_SKIP() << "needs two GPUs with peer access";
  expect_all(kGpu0, kGpu1);
}

// Ends of each side wait for a word or packets that never come.
TEST_F(GpuMessagesTest, AnAbortEndsWhatWaits) {
  const Buffer words = make(4096, kGpu0);
  std::vector<std::uint32_t> first(1024);
  first[0] = 1;
  move(words, host_buffer(first));
  const StreamHandle stream = cuda().create_stream(0).value();
  ASSERT_TRUE(cuda().prepare_steps(0).ok());
  for (const MessageSide side : {MessageSide::kSend, MessageSide::kSendPackets, MessageSide::kAwaitPlace,
                                 MessageSide::kReceive, MessageSide::kReceivePackets, MessageSide::kTake,
                                 MessageSide::kTakePackets, MessageSide::kAwaitMessage}) {
    MessageEnd end = copy_end(bytes(words, 256), bytes(words, 512), 16);
    end.side = side;
    end.count = static_cast<MessageCount*>(words.data);  // 1, which no word has reached
    end.waits = word(words, 2);
    end.label = is_take(side) ? 5 : 0;
    end.labels = bytes(words, 16);
    ASSERT_TRUE(cuda().queue_messages({&end, 1}, kGpu0, stream).ok());
  }
  Outcome over;
  ASSERT_TRUE(memory.when_queued_done(kGpu0, stream, &over).is_pending());
  for (int i = 0; i < 100; ++i) memory.progress();
  EXPECT_EQ(over.calls, 0);
  memory.abort_steps();
  poll_until([&] { return over.calls == 1; }, "messages that were aborted");
  EXPECT_EQ(over.status.code(), base::StatusCode::kClosed);
  EXPECT_TRUE(cuda().destroy_stream(stream).ok());
}

// A trap ends all work of the process on the device, so the process is another one.
TEST_F(GpuMessagesTest, AWrongLabelIsInTheErrorOfTheDevice) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const WrongTake& wrong : kWrongTakes) {
    const auto take_another = [&] {
      const MessageRing ring(memory, kGpu0, kGpu0, until);
      std::fputs(failure_of(wrong, memory, kGpu0, kGpu0, until, ring).c_str(), stderr);
      std::_Exit(0);
    };
    EXPECT_EXIT(take_another(), ::testing::ExitedWithCode(0),
                "a receive names another size or tag than its send");
  }
}

}  // namespace
}  // namespace weft::memory
