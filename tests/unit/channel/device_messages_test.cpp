// Channel messages of device memory on the machine's peer memory, within a PE and between two: order among
// messages of every kind of memory, and failures, which end both operations once and name the channel.
// tests/unit/machine/peer_memory/ has what the machine does with them.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using machine::TransferPath;
using memory::Place;
using testing::TestMemory;

struct DeviceMessages : ChannelPair, ::testing::TestWithParam<std::tuple<std::string, int>> {
  DeviceMessages() : ChannelPair(std::get<int>(GetParam()), std::get<std::string>(GetParam())) {}

  memory::Memory& memory_of(std::size_t node) { return job.memory(static_cast<int>(node) % job.num_pes()); }
  TestMemory make(std::size_t node, Place place, std::size_t size_bytes, std::uint8_t first) {
    return TestMemory(memory_of(node), place, size_bytes, first);
  }
  // What devices copied past the transport.
  std::uint64_t num_copied() {
    std::uint64_t messages = 0;
    for (const auto& use : job.runtime(0).machine().transport_use()) {
      const bool is_copy = use.path == TransferPath::kPeerMapped || use.path == TransferPath::kOwnPe;
      if (is_copy && use.kind == kDevice.kind) messages += use.messages;
    }
    return messages;
  }
};

TEST_P(DeviceMessages, KeepTheirOrderAmongThoseOfHostMemory) {
  connect(0xffff'fffd);
  constexpr std::size_t kCount = 12;
  constexpr std::size_t kBytes = 3000;
  TestMemory out_device = make(0, kDevice, kCount * kBytes, 1);
  TestMemory in_device = make(1, kDevice, kCount * kBytes, 100);
  TestMemory out_host = make(0, Place(), kCount * kBytes, 50);
  TestMemory in_host = make(1, Place(), kCount * kBytes, 150);
  const auto part = [](TestMemory& whole, std::size_t i) {
    memory::Buffer buffer = whole.buffer();
    buffer.data = static_cast<std::byte*>(buffer.data) + i * kBytes;
    buffer.size_bytes = kBytes;
    return buffer;
  };
  std::vector<memory::Buffer> sources;
  std::vector<memory::Buffer> destinations;
  for (std::size_t i = 0; i < kCount; ++i) {
    sources.push_back(part(i % 3 == 1 ? out_host : out_device, i));
    destinations.push_back(part(i % 4 == 2 ? in_host : in_device, i));
  }
  std::vector<OutcomePtr> all;
  for (std::size_t first = 0; first < kCount; first += 4) {
    const bool sends_first = first % 8 == 0;
    for (const bool sends : {sends_first, !sends_first}) {
      for (std::size_t i = first; i < first + 4; ++i) {
        all.push_back(sends ? send(0, sources[i]) : receive(1, destinations[i]));
      }
      settle();
    }
  }
  finish(all);
  for (std::size_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(testing::contents(memory_of(1), destinations[i]), testing::contents(memory_of(0), sources[i]))
        << i;
  }
  EXPECT_GT(num_copied(), 0u);
}

TEST_P(DeviceMessages, AFailedCopyEndsBothOperationsAndNamesTheChannel) {
  connect();
  for (const bool sends_first : {false, true}) {
    TestMemory out = make(0, kDevice, 100, 1);
    TestMemory in = make(1, kDevice, 100, 100);
    // Between PEs, what has received before is copied to.
    for (int i = 0; i < 2; ++i) finish({receive(1, in.buffer()), send(0, out.buffer())});
    TestMemory lost = make(0, kDevice, 100, 200);
    memory::EmulatedFaults faults;
    faults.fail_copy = 1;
    testing::emulated(memory_of(0)).set_faults(faults);
    OutcomePtr sent;
    if (sends_first) sent = send(0, lost.buffer());
    const OutcomePtr received = receive(1, in.buffer());
    if (!sends_first) sent = send(0, lost.buffer());
    finish({received, sent});
    EXPECT_TRUE(sent->status.failed());
    EXPECT_EQ(received->status.code(), StatusCode::kPeerFailed);
    const std::string message(received->status.message());
    for (const char* expected : {"Node[1] - ", "PE 0 could not send it", "as the fault injection says"}) {
      EXPECT_NE(message.find(expected), std::string::npos) << message;
    }
    finish({receive(1, in.buffer()), send(0, out.buffer())});
    EXPECT_EQ(in.now(), out.filled());
  }
}

TEST_P(DeviceMessages, OtherSizesFailTheReceive) {
  connect();
  TestMemory out = make(0, kDevice, 100, 1);
  TestMemory in = make(1, kDevice, 60, 100);
  const OutcomePtr received = receive(1, in.buffer());
  finish({received, send(0, out.buffer())});
  EXPECT_EQ(received->status.code(), StatusCode::kTruncated);
  EXPECT_NE(received->status.message().find("Node[1] - "), std::string::npos) << received->status.message();
  EXPECT_EQ(in.now(), in.filled());
}

INSTANTIATE_TEST_SUITE_P(Machines, DeviceMessages,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) +
                                  "_pe";
                         });

}  // namespace
}  // namespace weft::channel
