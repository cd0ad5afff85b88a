// Nodes on a PE each, for tests of the direct path: PEs of one process map one another's emulated memory as
// processes do; tests/multiproc has two processes.
#pragma once

#include "models/channel/direct_path.h"
#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {

struct DirectPathTest : ChannelPairTest {
  using TransferType = machine::TransferType;
  using TestMemory = testing::TestMemory;

  DirectPathTest() : ChannelPairTest(2) {}

  void start(std::uint32_t first_counter = 0) {
    connect(first_counter);
    // The first receive of a direction announces the mailbox, which may come later than its message.
    for (int pe = 0; pe < 2; ++pe) exchange(pe, 8);
    settle();
  }
  OutcomePtr send(int pe, const memory::ConstBuffer& buffer) { return ChannelPairTest::send(at(pe), buffer); }
  OutcomePtr receive(int pe, const memory::Buffer& buffer) {
    return ChannelPairTest::receive(at(pe), buffer);
  }
  static std::size_t at(int pe) { return static_cast<std::size_t>(pe); }

  // Memory of `pe` that has received before: only such is posted. Filled as if it had not.
  TestMemory used(int pe, std::size_t size_bytes, std::uint8_t first = 0) {
    TestMemory out(job.memory(1 - pe), kDevice, size_bytes, first);
    TestMemory in(job.memory(pe), kDevice, size_bytes, first);
    const OutcomePtr received = receive(pe, in.buffer());
    finish({received, send(1 - pe, out.buffer())});
    return in;
  }
  // From `pe` to the other, the receive first.
  void exchange(int pe, std::size_t size_bytes) {
    TestMemory out(job.memory(pe), kDevice, size_bytes, 3);
    TestMemory in = used(1 - pe, size_bytes);
    const OutcomePtr received = receive(1 - pe, in.buffer());
    finish({received, send(pe, out.buffer())});
    EXPECT_EQ(in.now(), out.filled());
  }

  std::uint64_t count(int pe, TransferType type) {
    std::uint64_t messages = 0;
    for (const auto& use : job.runtime(pe).machine().transport_use()) {
      if (use.type == type) messages += use.messages;
    }
    return messages;
  }
  std::uint64_t copies(int pe) { return count(pe, TransferType::kPeerCopy); }
  DirectPath& path(int pe) { return job.runtime(pe).model<Channels>().direct_path(); }
};

}  // namespace weft::channel
