// What staging promises beyond the conformance suite: order behind streams, and devices that are slow or
// fail. On loopback, whose host path is trivial.
#include "machine/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "machine/factory.h"
#include "tests/conformance/world.h"

namespace weft::machine {
namespace {

using base::StatusCode;
using conformance::Operation;
using conformance::pattern;
using conformance::World;
using memory::Buffer;
using memory::Kind;

constexpr std::size_t kSize = 256;

// Two PEs whose emulated devices do as told.
class FaultyPair {
 public:
  explicit FaultyPair(const memory::EmulatedFaults& faults_of_sender) {
    memory::MemoryOptions options;
    options.emulated_faults = faults_of_sender;
    sender_memory_ = std::make_unique<memory::Memory>(options);
    receiver_memory_ = std::make_unique<memory::Memory>();
    machines_ =
        std::move(make_in_process("loopback", {sender_memory_.get(), receiver_memory_.get()})).value();
  }
  ~FaultyPair() {
    for (auto& machine : machines_) machine->close();
  }
  Machine& sender() { return *machines_[0]; }
  Machine& receiver() { return *machines_[1]; }
  memory::Memory& sender_memory() { return *sender_memory_; }
  bool until(const std::function<bool()>& condition) {
    for (int round = 0; round < 100'000; ++round) {
      if (condition()) return true;
      for (auto& machine : machines_) machine->progress();
    }
    return false;
  }

 private:
  std::unique_ptr<memory::Memory> sender_memory_;
  std::unique_ptr<memory::Memory> receiver_memory_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

// A host message must not overtake a device message with its tag that is still being staged.
TEST(Staging, KeepsTheOrderOfOneTag) {
  World world("loopback", 2);
  Buffer device = world.buffer(0, Kind::kEmulated, pattern(kSize, 1));
  Buffer host = world.buffer(0, Kind::kHost, pattern(kSize, 2));
  Buffer to[2] = {world.buffer(1, Kind::kHost, kSize), world.buffer(1, Kind::kHost, kSize)};
  std::deque<Operation> operations(4);
  operations[0].start(world.machine(0).tag_send(1, 5, device, &operations[0]));
  operations[1].start(world.machine(0).tag_send(1, 5, host, &operations[1]));
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    operations[2 + i].start(world.machine(1).tag_receive(5, kFullTagMask, to[i], &operations[2 + i]));
  }
  ASSERT_TRUE(world.until([&] { return std::ranges::all_of(operations, &Operation::done); }));
  EXPECT_EQ(world.read(1, to[0]), pattern(kSize, 1));
  EXPECT_EQ(world.read(1, to[1]), pattern(kSize, 2));
}

// A slow device holds up its own tag only.
TEST(Staging, OtherTagsOvertake) {
  memory::EmulatedFaults slow;
  slow.polls_per_copy = 1000;
  FaultyPair pair(slow);
  auto device = pair.sender_memory().allocate(kSize, {Kind::kEmulated, 0});
  ASSERT_TRUE(device.ok());
  std::byte bytes[kSize] = {};
  std::byte into[kSize] = {};
  Operation slow_send;
  Operation quick_send;
  Operation receive;
  slow_send.start(pair.sender().tag_send(1, 1, *device, &slow_send));
  quick_send.start(pair.sender().tag_send(1, 2, {bytes, kSize}, &quick_send));
  receive.start(pair.receiver().tag_receive(2, kFullTagMask, {into, kSize, {}, nullptr}, &receive));
  ASSERT_TRUE(pair.until([&] { return receive.done() && quick_send.done(); }));
  EXPECT_FALSE(slow_send.done());
  ASSERT_TRUE(pair.until([&] { return slow_send.done(); }));
  EXPECT_TRUE(slow_send.status().ok()) << slow_send.status().to_string();
}

TEST(Staging, AFailedCopyIsTheSendersError) {
  memory::EmulatedFaults failing;
  failing.fail_copy = 1;
  FaultyPair pair(failing);
  auto device = pair.sender_memory().allocate(kSize, {Kind::kEmulated, 0});
  ASSERT_TRUE(device.ok());
  Operation first;
  Operation second;
  std::byte into[kSize] = {};
  Operation receive;
  first.start(pair.sender().tag_send(1, 1, *device, &first));
  second.start(pair.sender().tag_send(1, 1, *device, &second));
  receive.start(pair.receiver().tag_receive(1, kFullTagMask, {into, kSize, {}, nullptr}, &receive));
  ASSERT_TRUE(pair.until([&] { return first.done() && second.done() && receive.done(); }));
  EXPECT_TRUE(first.status().failed());
  EXPECT_TRUE(second.status().ok()) << second.status().to_string();
}

TEST(Staging, CloseWaitsForTheDevice) {
  memory::EmulatedFaults slow;
  slow.polls_per_copy = 1000;
  FaultyPair pair(slow);
  auto device = pair.sender_memory().allocate(kSize, {Kind::kEmulated, 0});
  ASSERT_TRUE(device.ok());
  Operation send;
  send.start(pair.sender().tag_send(1, 1, *device, &send));
  pair.sender().close();
  EXPECT_TRUE(send.done());
  EXPECT_EQ(send.status().code(), StatusCode::kClosed);
  EXPECT_FALSE(pair.sender_memory().has_pending());
}

TEST(Staging, CancelledWhileTheDeviceCopies) {
  memory::EmulatedFaults slow;
  slow.polls_per_copy = 1000;
  FaultyPair pair(slow);
  auto device = pair.sender_memory().allocate(kSize, {Kind::kEmulated, 0});
  ASSERT_TRUE(device.ok());
  Operation send;
  send.start(pair.sender().tag_send(1, 1, *device, &send));
  pair.sender().progress();
  pair.sender().cancel(&send);
  ASSERT_TRUE(pair.until([&] { return send.done(); }));
  EXPECT_EQ(send.status().code(), StatusCode::kCancelled);
}

TEST(Staging, CountsWhatItCarried) {
  World world("loopback", 2);
  Buffer device = world.buffer(0, Kind::kEmulated, kSize);
  Operation send;
  send.start(world.machine(0).tag_send(1, 5, device, &send));
  ASSERT_TRUE(world.finish(send));
  const auto use = world.machine(0).transport_use();
  const auto staged = std::ranges::find(use, "staged emulated", &TransportUse::name);
  ASSERT_NE(staged, use.end());
  EXPECT_EQ(staged->messages, 1u);
  EXPECT_EQ(staged->bytes, kSize);
}

}  // namespace
}  // namespace weft::machine
