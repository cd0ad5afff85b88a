// A pair of PEs with small bounce buffers, for tests of messages that cannot be copied straight into their receivers.
#pragma once

#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {

// Small, so that messages meet every boundary: chunks of 512 to 4096 bytes.
inline constexpr std::size_t kBounceBytes = 16384;

struct BounceTest : PeerMemoryTest {
  BounceTest() {
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) {
      peer_memory(node).set_bounce_bytes(kBounceBytes);
    }
  }
  // Memory of the node that has been used before, so that other PEs may map it.
  TestMemory mappable(std::size_t node, std::size_t size_bytes, std::uint8_t first = 0) {
    TestMemory from(memory(node), kDevice, size_bytes, first);
    TestMemory to = refusing(1 - node, size_bytes);
    const OutcomePtr received = receive(1 - node, to.buffer());
    finish({received, send(node, from.buffer())});
    return from;
  }
  void expect_message(std::size_t node, TestMemory& from, TestMemory& to) {
    const OutcomePtr received = receive(1 - node, to.buffer());
    const OutcomePtr sent = send(node, from.buffer());
    finish({received, sent});
    EXPECT_TRUE(sent->status.ok()) << sent->status.to_string();
    EXPECT_TRUE(received->status.ok()) << received->status.to_string();
    EXPECT_EQ(sent->size_bytes, from.filled().size());
    EXPECT_EQ(received->size_bytes, from.filled().size());
    EXPECT_EQ(to.now(), from.filled());
  }
  void fail_copy(std::size_t node, std::uint64_t number) {
    memory::EmulatedFaults faults;
    faults.fail_copy = number;
    testing::emulated(memory(node)).set_faults(faults);
  }
  std::uint64_t bounced(std::size_t node) { return count(node, TransferPath::kBounced); }
  std::uint64_t pulled(std::size_t node) { return count(node, TransferPath::kPulled); }
};

}  // namespace weft::machine
