// What staging promises beyond the conformance suite: order behind streams, and devices that are slow or
// fail. On loopback, whose host path is trivial.
#include "machine/staging/staging.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "machine/loopback/loopback_machine.h"
#include "memory/kinds/cuda/cuda_options.h"
#include "memory/kinds/emulated/emulated_backend.h"
#include "memory/kinds/emulated/emulated_options.h"
#include "tests/conformance/world.h"
#include "tests/support/leaks_on_purpose.h"

namespace weft::machine {
namespace {

using base::StatusCode;
using conformance::CheckedOperation;
using conformance::pattern;
using conformance::World;
using memory::Buffer;
using memory::Kind;
using test_support::LeaksOnPurpose;

constexpr std::size_t kSize = 256;

// Two PEs, the first with memory that does as told.
class Pair {
 public:
  explicit Pair(const memory::MemoryOptions& memory_of_sender, const loopback::LoopbackOptions& options = {})
      : sender_memory_(memory_of_sender), receiver_memory_(without_faults(memory_of_sender)) {
    machines_ = loopback::make_loopback({&sender_memory_, &receiver_memory_}, options).value();
  }
  ~Pair() {
    for (auto& machine : machines_) machine->close();
  }
  Machine& sender() { return *machines_[0]; }
  Machine& receiver() { return *machines_[1]; }
  memory::Memory& sender_memory() { return sender_memory_; }
  memory::Memory& receiver_memory() { return receiver_memory_; }
  bool until(const std::function<bool()>& condition) {
    for (int round = 0; round < 100'000; ++round) {
      if (condition()) return true;
      for (auto& machine : machines_) machine->progress();
    }
    return false;
  }

 private:
  static memory::MemoryOptions without_faults(memory::MemoryOptions options) {
    options.of<memory::EmulatedOptions>().faults = {};
    return options;
  }

  memory::Memory sender_memory_;
  memory::Memory receiver_memory_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

// The sender's emulated device takes its time, or fails.
class FaultyPair : public Pair {
 public:
  explicit FaultyPair(std::string_view faults) : Pair(with(faults)) {}

  const Buffer device = sender_memory().allocate(kSize, {Kind::kEmulated, 0}).value();

 private:
  static memory::MemoryOptions with(std::string_view faults) {
    memory::MemoryOptions options;
    options.of<memory::EmulatedOptions>().faults = memory::parse_emulated_faults(faults).value();
    return options;
  }
};

constexpr std::string_view kSlow = "polls=1000";

TransportUse only_use(const Machine& machine) {
  const auto uses = machine.transport_use();
  EXPECT_EQ(uses.size(), 1u);
  return uses.empty() ? TransportUse() : uses.front();
}

// A host message must not overtake a device message with its tag that is still being staged.
TEST(Staging, KeepsTheOrderOfOneTag) {
  World world("loopback", 2);
  Buffer device = world.buffer(0, Kind::kEmulated, pattern(kSize, 1));
  Buffer host = world.buffer(0, Kind::kHost, pattern(kSize, 2));
  Buffer to[2] = {world.buffer(1, Kind::kHost, kSize), world.buffer(1, Kind::kHost, kSize)};
  std::deque<CheckedOperation> operations(4);
  operations[0].start(world.machine(0).tag_send(1, 5, device, &operations[0]));
  operations[1].start(world.machine(0).tag_send(1, 5, host, &operations[1]));
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    operations[2 + i].start(world.machine(1).tag_receive(5, kFullTagMask, to[i], &operations[2 + i]));
  }
  ASSERT_TRUE(world.finish_all(operations));
  EXPECT_EQ(world.read(1, to[0]), pattern(kSize, 1));
  EXPECT_EQ(world.read(1, to[1]), pattern(kSize, 2));
}

// A slow device holds up its own tag only.
TEST(Staging, OtherTagsOvertake) {
  FaultyPair pair(kSlow);
  std::byte bytes[kSize] = {};
  std::byte into[kSize] = {};
  CheckedOperation slow_send;
  CheckedOperation quick_send;
  CheckedOperation receive;
  slow_send.start(pair.sender().tag_send(1, 1, pair.device, &slow_send));
  quick_send.start(pair.sender().tag_send(1, 2, {bytes, kSize}, &quick_send));
  receive.start(pair.receiver().tag_receive(2, kFullTagMask, {into, kSize, {}, nullptr}, &receive));
  ASSERT_TRUE(pair.until([&] { return receive.done() && quick_send.done(); }));
  EXPECT_FALSE(slow_send.done());
  ASSERT_TRUE(pair.until([&] { return slow_send.done(); }));
  EXPECT_TRUE(slow_send.status().ok()) << slow_send.status().to_string();
}

TEST(Staging, AFailedCopyIsTheSendersError) {
  FaultyPair pair("fail_copy=1");
  auto& emulated = static_cast<memory::EmulatedBackend&>(*pair.sender_memory().backend(Kind::kEmulated));
  const std::vector<std::byte> sent = pattern(kSize, 1);
  std::ranges::copy(sent, static_cast<std::byte*>(emulated.device_view(pair.device.data, kSize).value()));
  CheckedOperation first;
  CheckedOperation second;
  std::vector<std::byte> into(kSize);
  CheckedOperation receive;
  first.start(pair.sender().tag_send(1, 1, pair.device, &first));
  second.start(pair.sender().tag_send(1, 1, pair.device, &second));
  receive.start(pair.receiver().tag_receive(1, kFullTagMask, {into.data(), kSize, {}, nullptr}, &receive));
  ASSERT_TRUE(pair.until([&] { return first.done() && second.done() && receive.done(); }));
  EXPECT_TRUE(first.status().failed());
  EXPECT_TRUE(second.status().ok()) << second.status().to_string();
  EXPECT_TRUE(receive.status().ok()) << receive.status().to_string();
  EXPECT_EQ(into, sent);
}

TEST(Staging, CloseWaitsForTheDevice) {
  FaultyPair pair(kSlow);
  CheckedOperation send;
  send.start(pair.sender().tag_send(1, 1, pair.device, &send));
  pair.sender().close();
  EXPECT_TRUE(send.done());
  EXPECT_EQ(send.status().code(), StatusCode::kClosed);
  EXPECT_FALSE(pair.sender_memory().has_pending());
}

TEST(Staging, CloseGivesUpOnADeviceThatHangs) {
  const LeaksOnPurpose guard;
  memory::MemoryOptions options;
  options.device_timeout = std::chrono::milliseconds(1);
  Pair pair(options);
  auto& emulated = static_cast<memory::EmulatedBackend&>(*pair.sender_memory().backend(Kind::kEmulated));
  Buffer device = pair.sender_memory().allocate(kSize, {Kind::kEmulated, 0}).value();
  device.stream = emulated.create_stream(0).value();
  ASSERT_TRUE(emulated.launch(device.stream, 0, &base::Status::pending).ok());
  CheckedOperation send;
  send.start(pair.sender().tag_send(1, 1, device, &send));
  pair.sender().close();
  ASSERT_TRUE(send.done());
  EXPECT_EQ(send.status().code(), StatusCode::kClosed);
  pair.sender_memory().close();
  EXPECT_FALSE(pair.sender_memory().has_pending());
}

TEST(Staging, CancelledWhileTheDeviceCopies) {
  FaultyPair pair(kSlow);
  CheckedOperation send;
  send.start(pair.sender().tag_send(1, 1, pair.device, &send));
  pair.sender().progress();
  pair.sender().cancel(&send);
  ASSERT_TRUE(pair.until([&] { return send.done(); }));
  EXPECT_EQ(send.status().code(), StatusCode::kCancelled);
}

TEST(Staging, CountsWhatItCarried) {
  World world("loopback", 2);
  Buffer device = world.buffer(0, Kind::kEmulated, kSize);
  CheckedOperation send;
  send.start(world.machine(0).tag_send(1, 5, device, &send));
  ASSERT_TRUE(world.finish(send));
  const TransportUse use = only_use(world.machine(0));
  EXPECT_EQ(use.type, TransferType::kTagSend);
  EXPECT_EQ(use.path, TransferPath::kStaged);
  EXPECT_EQ(use.kind, Kind::kEmulated);
  EXPECT_EQ(use.messages, 1u);
  EXPECT_EQ(use.bytes, kSize);
}

// One way through the machine is for an observer, the other for none.
TEST(Staging, CountsAPutAndItsFlushOnceWithAnObserverAndWithout) {
  struct Observer final : TransferObserver {
    void transfer_began(const TransferEvent&) override { ++began; }
    void transfer_ended(const TransferEvent&, bool succeeded) override { ended += succeeded ? 1 : 0; }
    int began = 0;
    int ended = 0;
  };
  for (const char* const machine : {"loopback", "ucx"}) {
    World world(machine, 2);
    const Buffer target = world.buffer(1, Kind::kHost, kSize);
    const RemoteMemory remote = world.machine(1).register_memory(target).value();
    const Buffer source = world.buffer(0, Kind::kHost, pattern(kSize, 1));
    Observer observer;
    for (const std::uint64_t number : {1, 2}) {
      if (number == 2) world.machine(0).set_transfer_observer(&observer);
      CheckedOperation put;
      put.start(world.machine(0).put_and_flush(1, source, remote, 0, &put));
      ASSERT_TRUE(world.finish(put));
      EXPECT_TRUE(put.status().ok()) << put.status().to_string();
      EXPECT_EQ(world.read(1, target), pattern(kSize, 1));
      const TransportUse use = only_use(world.machine(0));
      EXPECT_EQ(use.type, TransferType::kPut);
      EXPECT_EQ(use.path, TransferPath::kThroughUcx);
      EXPECT_EQ(use.messages, number) << machine;
      EXPECT_EQ(use.bytes, number * kSize);
    }
    world.machine(0).set_transfer_observer(nullptr);
    EXPECT_EQ(observer.began, 1);
    EXPECT_EQ(observer.ended, 1);
  }
}

// Kind cuda, which the machine addresses here as UCX does on a machine with GPUs. The stand-in driver's
// memory is host memory, so that the test may look at it.
class StagingOfCuda : public ::testing::TestWithParam<StagingMode> {
 protected:
  StagingOfCuda() : pair_(with_stand_in_driver(), options()) {}

  static memory::MemoryOptions with_stand_in_driver() {
    memory::MemoryOptions options;
    options.of<memory::CudaOptions>().driver = FAKE_CUDA;
    return options;
  }
  static loopback::LoopbackOptions options() {
    return {.staging = GetParam(), .late_sends = false, .addressed_kinds = {Kind::kCuda}};
  }

  // A buffer that its memory frees.
  Buffer device(memory::Memory& memory, std::uint64_t seed) {
    Buffer buffer = memory.allocate(kSize, {Kind::kCuda, 0}).value();
    std::ranges::copy(pattern(kSize, seed), static_cast<std::byte*>(buffer.data));
    return buffer;
  }
  static std::vector<std::byte> bytes_of(const Buffer& buffer) {
    const auto* begin = static_cast<const std::byte*>(buffer.data);
    return {begin, begin + buffer.size_bytes};
  }
  TransferPath expected_path() const {
    return GetParam() == StagingMode::kHost ? TransferPath::kStaged : TransferPath::kThroughUcx;
  }

  Pair pair_;
};

TEST_P(StagingOfCuda, SendsGoThroughTheHostIfWanted) {
  const Buffer from = device(pair_.sender_memory(), 1);
  const Buffer to = device(pair_.receiver_memory(), 2);
  CheckedOperation send;
  CheckedOperation receive;
  send.start(pair_.sender().tag_send(1, 5, from, &send));
  receive.start(pair_.receiver().tag_receive(5, kFullTagMask, to, &receive));
  ASSERT_TRUE(pair_.until([&] { return send.done() && receive.done(); }));
  EXPECT_EQ(bytes_of(to), pattern(kSize, 1));
  const TransportUse use = only_use(pair_.sender());
  EXPECT_EQ(use.path, expected_path());
  EXPECT_EQ(use.kind, Kind::kCuda);
  const auto landed = pair_.receiver().transport_use();
  EXPECT_EQ(landed.size(), GetParam() == StagingMode::kHost ? 1u : 0u);
}

TEST_P(StagingOfCuda, RegisteredMemoryIsReachedThroughItsOwnerIfWanted) {
  const Buffer target = device(pair_.receiver_memory(), 1);
  const RemoteMemory remote = pair_.receiver().register_memory(target).value();
  const std::vector<std::byte> written = pattern(kSize, 3);
  std::vector<std::byte> read(kSize);
  CheckedOperation put;
  CheckedOperation flush;
  CheckedOperation get;
  put.start(pair_.sender().put(1, {written.data(), kSize}, remote, 0, &put));
  flush.start(pair_.sender().flush(&flush));
  ASSERT_TRUE(pair_.until([&] { return put.done() && flush.done(); }));
  EXPECT_EQ(bytes_of(target), written);
  get.start(pair_.sender().get(1, {read.data(), kSize, {}, nullptr}, remote, 0, &get));
  ASSERT_TRUE(pair_.until([&] { return get.done(); }));
  EXPECT_EQ(read, written);
  for (const TransportUse& use : pair_.sender().transport_use()) {
    if (use.type == TransferType::kReceive) continue;  // of the get's answer
    EXPECT_EQ(use.path, GetParam() == StagingMode::kHost ? TransferPath::kStaged : TransferPath::kThroughUcx);
  }
  EXPECT_TRUE(pair_.receiver().deregister_memory(remote).ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, StagingOfCuda, ::testing::Values(StagingMode::kDevice, StagingMode::kHost),
                         [](const auto& info) { return std::string(staging_mode_name(info.param)); });

// The peer's answer to a get or an atomic arrives while the request's own send is still under way.
TEST(Staging, AnswersThatOvertakeTheirRequestsSend) {
  Pair pair({}, {.staging = StagingMode::kDevice, .late_sends = true, .addressed_kinds = {}});
  const Buffer target = pair.receiver_memory().allocate(kSize, {Kind::kEmulated, 0}).value();
  const RemoteMemory device = pair.receiver().register_memory(target).value();
  std::uint64_t word = 40;
  const RemoteMemory host = pair.receiver().register_memory({&word, sizeof word, {}, nullptr}).value();
  std::vector<std::byte> into(kSize);
  std::uint64_t old_value = 0;
  CheckedOperation get;
  CheckedOperation add;
  get.start(pair.sender().get(1, {into.data(), kSize, {}, nullptr}, device, 0, &get));
  add.start(pair.sender().atomic(1, AtomicOperation::kAdd, host, 0, 2, 0, &old_value, &add));
  ASSERT_TRUE(pair.until([&] { return get.done() && add.done(); }));
  EXPECT_TRUE(get.status().ok()) << get.status().to_string();
  EXPECT_TRUE(add.status().ok()) << add.status().to_string();
  EXPECT_EQ(old_value, 40u);
  EXPECT_EQ(word, 42u);
}

// The owner's refusal comes while the put is under way, while a flush waits, or before there is a flush.
TEST(Staging, ARefusedPutIsReportedOnce) {
  for (const bool late_sends : {false, true}) {
    for (const std::size_t size : {std::size_t{16}, std::size_t{100'000}}) {
      SCOPED_TRACE(std::to_string(size) + (late_sends ? " bytes, late sends" : " bytes"));
      Pair pair({}, {.staging = StagingMode::kDevice, .late_sends = late_sends, .addressed_kinds = {}});
      const Buffer target = pair.receiver_memory().allocate(size, {Kind::kEmulated, 0}).value();
      const RemoteMemory gone = pair.receiver().register_memory(target).value();
      ASSERT_TRUE(pair.receiver().deregister_memory(gone).ok());
      const std::vector<std::byte> from(size);
      const auto finish = [&pair](auto start) {
        CheckedOperation operation;
        operation.start(start(&operation));
        EXPECT_TRUE(pair.until([&] { return operation.done(); }));
        return operation.status().code();
      };
      const auto flush = [&](base::Completion* c) { return pair.sender().flush(1, c); };

      EXPECT_EQ(
          finish([&](auto* c) { return pair.sender().put_and_flush(1, {from.data(), size}, gone, 0, c); }),
          StatusCode::kNotFound);
      EXPECT_EQ(finish(flush), StatusCode::kOk) << "it has been reported";

      // As long as nothing happens, the put may be over and no flush waits.
      const StatusCode put =
          finish([&](auto* c) { return pair.sender().put(1, {from.data(), size}, gone, 0, c); });
      for (int round = 0; round < 100; ++round) {
        pair.receiver().progress();
        pair.sender().progress();
      }
      const StatusCode flushed = finish(flush);
      EXPECT_TRUE((put == StatusCode::kNotFound) != (flushed == StatusCode::kNotFound));
      EXPECT_EQ(finish(flush), StatusCode::kOk);

      // A flush that covers it, and a put beside it that its owner takes.
      const Buffer there = pair.receiver_memory().allocate(size, {Kind::kEmulated, 0}).value();
      const RemoteMemory good = pair.receiver().register_memory(there).value();
      CheckedOperation refused;
      CheckedOperation taken;
      refused.start(pair.sender().put_and_flush(1, {from.data(), size}, gone, 0, &refused));
      taken.start(pair.sender().put(1, {from.data(), size}, good, 0, &taken));
      ASSERT_TRUE(pair.until([&] { return refused.done() && taken.done(); }));
      EXPECT_EQ(refused.status().code(), StatusCode::kNotFound);
      EXPECT_TRUE(taken.status().ok()) << taken.status().to_string();
    }
  }
}

TEST(Staging, MessagesToTheOwnPeAreCountedApart) {
  World world("loopback", 1);
  std::byte byte{};
  CheckedOperation send;
  send.start(world.machine(0).tag_send(0, 1, {&byte, 1}, &send));
  EXPECT_EQ(only_use(world.machine(0)).path, TransferPath::kOwnPe);
}

}  // namespace
}  // namespace weft::machine
