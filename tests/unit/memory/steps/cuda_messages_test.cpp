// Messages of kind cuda over the stand-in driver, which does what the kernels do. What the kernels' text does on a device,
// gpu_messages_test shows.
#include <array>
#include <string>

#include "gtest/gtest.h"

#include "memory/kinds/cuda/cuda_backend.h"
#include "memory/kinds/cuda/message_kernel.h"
#include "tests/unit/memory/fake_cuda_fixture.h"
#include "tests/unit/memory/places.h"
#include "tests/unit/memory/steps/message_cases.h"
#include "tests/unit/memory/steps/ring_cases.h"

namespace weft::memory {
namespace {

struct CudaMessagesTest : FakeCudaTest {
  const MessageRing::Until until = [this](const std::function<bool()>& holds) {
    for (int i = 0; i < 10000 && !holds(); ++i) memory->progress();
    ASSERT_TRUE(holds());
  };
};

TEST_F(CudaMessagesTest, OfAllSizes) { expect_all_messages(*memory, kGpu0, kGpu1, until); }

TEST_F(CudaMessagesTest, ThroughRings) {
  expect_rings(*memory, kGpu0, kGpu1, until);
  expect_awaited_ring(*memory, kGpu0, kGpu1, until);
}

TEST_F(CudaMessagesTest, AWrongLabelIsInTheErrorOfTheDevice) {
  for (const WrongTake& wrong : kWrongTakes) {
    const MessageRing ring(*memory, kGpu0, kGpu1, until);
    const std::string failure = failure_of(wrong, *memory, kGpu0, kGpu1, until, ring);
    fake_cuda()->broken = 0;
    EXPECT_NE(failure.find("device any more: a receive expects a message with the label"), std::string::npos)
        << failure;
  }
}

TEST_F(CudaMessagesTest, AllEndsOfACallAreOneLaunch) {
  ASSERT_TRUE(cuda().prepare_steps(0).ok());
  const auto before = fake_cuda()->calls["cuLaunchKernel"];
  const std::array<MessageEnd, kMaxMessageEnds> ends;
  ASSERT_TRUE(cuda().queue_messages(ends, kGpu0, nullptr).ok());
  ASSERT_TRUE(cuda().queue_messages({ends.data(), kFewMessageEnds}, kGpu0, nullptr).ok());
  EXPECT_EQ(fake_cuda()->calls["cuLaunchKernel"] - before, 2);
  fake_cuda()->fail_next["cuLaunchKernel"] = 2;
  EXPECT_EQ(cuda().queue_messages(ends, kGpu0, nullptr).code(), base::StatusCode::kOutOfMemory);
}

TEST(MessageKernelTest, LaunchesFitTheMessages) {
  const auto grid = [](const MessageEnd& end) { return message_grid({&end, 1}); };
  MessageEnd packets = copy_end(nullptr, nullptr, 300);
  packets.side = MessageSide::kSendPackets;
  EXPECT_EQ(grid(packets).threads, 64U) << "one for 8 bytes";
  EXPECT_EQ(grid(packets).blocks, 1U);
  const MessageEnd large = copy_end(nullptr, nullptr, std::size_t{1} << 30);
  EXPECT_EQ(grid(large).threads, 1024U);
  EXPECT_EQ(grid(large).blocks, kMaxMessageParts);
  MessageEnd take = copy_end(nullptr, nullptr, 300);
  take.side = MessageSide::kTakePackets;
  take.label = 1;
  take.size_bytes = 256;
  EXPECT_EQ(grid(take).threads, 64U) << "and one for the label";
  take = large;
  take.side = MessageSide::kTake;
  EXPECT_EQ(grid(take).blocks, kMaxMessageParts);
  MessageEnd receive = large;
  receive.side = MessageSide::kReceive;
  EXPECT_EQ(grid(receive).threads, 64U) << "one for a part";
  EXPECT_EQ(grid(receive).blocks, 1U);
  const std::array<MessageEnd, 2> both{packets, large};
  EXPECT_EQ(message_grid(both).ends, 2U);
  EXPECT_EQ(message_grid(both).threads, 1024U);
}

}  // namespace
}  // namespace weft::memory
