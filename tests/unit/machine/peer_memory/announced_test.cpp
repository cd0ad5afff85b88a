// Messages that a model announces in messages of its own, as it does the payloads of entry methods.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "tests/support/within_a_minute.h"
#include "tests/unit/machine/peer_memory/peer_pair.h"

namespace weft::machine {
namespace {

using base::StatusCode;
using memory::Kind;

memory::Buffer part_of(const memory::Buffer& whole, std::size_t offset_bytes, std::size_t size_bytes) {
  return {static_cast<std::byte*>(whole.data) + offset_bytes, size_bytes, whole.place, whole.stream};
}

// The name of all that node 0 announces to node 1.
constexpr Tag kStream = Tag{1} << 60;

struct AnnouncedTest : PeerMemoryTest {
  AnnouncedTest() {
    connect();
    for (const std::size_t node : {std::size_t{0}, std::size_t{1}}) peer_memory(node).set_bounce_bytes(16384);
  }

  struct Sent {
    StreamMessage message;
    PeerMemory::AnnouncedSend plan;
    OutcomePtr outcome;
  };
  PeerMemory::AnnouncedSend plan(const memory::ConstBuffer& buffer, bool is_movable = false) {
    return peer_memory(0).plan_announced(1, kStream, buffer, is_movable);
  }
  // What travels in the announcement is in the result.
  Sent announce(const memory::ConstBuffer& buffer) {
    Sent sent{{next_, kStream | next_}, plan(buffer), std::make_shared<Outcome>()};
    ++next_;
    all_.push_back(sent.outcome);
    sent.outcome->started(sent.plan.waits
                              ? peer_memory(0).send_announced(1, kStream, sent.message, buffer,
                                                              std::move(sent.plan.named), sent.outcome.get())
                              : machine(0).tag_send(1, sent.message.tag, buffer, sent.outcome.get()),
                          buffer.size_bytes);
    return sent;
  }
  OutcomePtr land(const Sent& sent, const memory::Buffer& buffer) {
    auto outcome = std::make_shared<Outcome>();
    all_.push_back(outcome);
    outcome->started(peer_memory(1).receive_announced(0, kStream, sent.message, sent.plan.waits,
                                                      sent.plan.source ? &*sent.plan.source : nullptr, buffer,
                                                      outcome.get()),
                     buffer.size_bytes);
    return outcome;
  }
  void expect_message(TestMemory& from, TestMemory& to) {
    const Sent sent = announce(from.buffer());
    finish({sent.outcome, land(sent, to.buffer())});
    EXPECT_TRUE(sent.outcome->status.ok()) << sent.outcome->status.to_string();
    EXPECT_EQ(to.now(), from.filled());
  }
  // The sender knows the receiver's mailbox.
  void start_announced() {
    TestMemory from(memory(0), kDevice, 100, 3);
    TestMemory to(memory(1), kDevice, 100);
    expect_message(from, to);
    settle();
    EXPECT_TRUE(plan(from.buffer()).waits);
  }
  // The same by host memory.
  void start_named() {
    TestMemory from(memory(0), {}, kNamed, 3);
    TestMemory to(memory(1), {}, kNamed);
    expect_message(from, to);
    settle();
    EXPECT_TRUE(plan(from.buffer()).source);
  }
  // Device memory at both ends that a message has used: the next one names the sender's, and finds the receiver's exported.
  struct UsedMemory {
    explicit UsedMemory(AnnouncedTest& test)
        : from(test.memory(0), kDevice, 5000, 5), to(test.memory(1), kDevice, 5000) {
      test.start_announced();
      test.expect_message(from, to);
      test.settle();  // its tagged half has ended
    }
    TestMemory from;
    TestMemory to;
  };
  // Announces all of `used.from` once more. Nothing of it is in `used.to`.
  Sent announce_again(UsedMemory& used) {
    std::memset(testing::view(memory(1), used.to.buffer()), 0, used.to.buffer().size_bytes);
    Sent sent = announce(used.from.buffer());
    EXPECT_TRUE(sent.plan.source);
    return sent;
  }
  void progress(std::size_t pe) {
    for (int i = 0; i < 2000; ++i) machine(static_cast<int>(pe)).progress();
  }
  std::uint64_t shared() { return count(0, TransferPath::kShared, Kind::kHost); }

  static constexpr std::size_t kNamed = PeerMemory::kLeastWaitingBytes;
  std::uint32_t next_ = 0;
  std::vector<OutcomePtr> all_;
};

TEST_P(AnnouncedTest, TheFirstTakesItsTagAndTheOthersAreCopied) {
  start_announced();
  EXPECT_EQ(copies(0), 0u);
  for (const std::size_t size_bytes : {1, 8, 4097, 1'000'000}) {
    TestMemory from =
        size_bytes % 2 == 0 ? refusing(0, size_bytes, 3) : TestMemory(memory(0), kDevice, size_bytes, 3);
    TestMemory to(memory(1), kDevice, size_bytes);
    expect_message(from, to);
  }
  EXPECT_EQ(copies(0), 4u) << "memory that is used for the first time is mapped too";
}

TEST_P(AnnouncedTest, MemoryThatCannotBeMappedIsBounced) {
  start_announced();
  TestMemory from = refusing(0, 50'000, 3);
  TestMemory to = refusing(1, 50'000);
  expect_message(from, to);
  EXPECT_EQ(count(0, TransferPath::kBounced), 1u);
}

TEST_P(AnnouncedTest, HostMemoryTakesItsTag) {
  start_announced();
  TestMemory from(memory(0), kDevice, 5000, 3);
  TestMemory to(memory(1), {}, 5000);
  expect_message(from, to);
  TestMemory host(memory(0), {}, 5000, 3);
  EXPECT_FALSE(plan(host.buffer()).waits);
  TestMemory device(memory(1), kDevice, 5000);
  expect_message(host, device);
  EXPECT_EQ(copies(0), 0u);
}

TEST_P(AnnouncedTest, LargeHostMemoryIsSharedAfterTheFirst) {
  for (std::uint64_t messages = 0; messages < 4; ++messages) {
    TestMemory from(memory(0), {}, SharedCopy::kLeastAnnouncedBytes + messages, 3);
    TestMemory to(memory(1), {}, SharedCopy::kLeastAnnouncedBytes + messages);
    expect_message(from, to);
    settle();
    EXPECT_EQ(count(0, TransferPath::kShared, Kind::kHost), messages);
  }
}

TEST_P(AnnouncedTest, NamedHostMemoryIsCopiedWhileItsSenderComputes) {
  start_named();
  for (const std::size_t size_bytes : {kNamed, kNamed + 1, 5 * kNamed}) {
    TestMemory from(memory(0), {}, size_bytes, 5);
    TestMemory to(memory(1), {}, size_bytes);
    const std::uint64_t before = shared();
    const Sent sent = announce(from.buffer());
    const OutcomePtr received = land(sent, to.buffer());
    progress(1);
    EXPECT_TRUE(received->done) << size_bytes;
    EXPECT_FALSE(sent.outcome->done);
    EXPECT_EQ(to.now(), from.filled());
    finish({sent.outcome});
    EXPECT_EQ(shared(), before + 1);
  }
}

TEST_P(AnnouncedTest, NamedHostMemoryIsCopiedByItsSenderWhileTheReceiverComputes) {
  start_named();
  TestMemory from(memory(0), {}, 5 * kNamed, 5);
  TestMemory to(memory(1), {}, 5 * kNamed);
  const Sent sent = announce(from.buffer());
  const OutcomePtr received = land(sent, to.buffer());
  // On loopback the sender gets no message while the receiver makes no progress.
  EXPECT_TRUE(testing::within_a_minute([this] { return shared() > 0; }, [this] { step(); }));
  progress(0);
  EXPECT_TRUE(sent.outcome->done);
  EXPECT_EQ(to.now(), from.filled());
  finish({received});
}

TEST_P(AnnouncedTest, SlotsAreUsedAgainBeforeTheSenderKnows) {
  start_named();
  constexpr std::size_t kMessages = 3 * kSlots;
  TestMemory from(memory(0), {}, kMessages * kNamed, 7);
  TestMemory to(memory(1), {}, kMessages * kNamed);
  std::vector<Sent> sent;
  std::vector<OutcomePtr> all;
  for (std::size_t i = 0; i < kMessages; ++i) {
    sent.push_back(announce(part_of(from.buffer(), i * kNamed, kNamed)));
    all.push_back(sent[i].outcome);
  }
  for (std::size_t i = 0; i < kMessages; ++i) {
    all.push_back(land(sent[i], part_of(to.buffer(), i * kNamed, kNamed)));
    progress(1);
    EXPECT_TRUE(all.back()->done) << i;
  }
  EXPECT_EQ(to.now(), from.filled());
  finish(all);
  EXPECT_EQ(shared(), kMessages);
}

TEST_P(AnnouncedTest, NamedHostMemoryInAnyOrder) {
  start_named();
  const unsigned seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  std::vector<Sent> sent;
  for (std::size_t i = 0; i < 150; ++i) {
    const std::size_t size_bytes = kNamed / 2 + random() % (3 * kNamed);
    out.emplace_back(memory(0), memory::Place(), size_bytes, static_cast<std::uint8_t>(i));
    in.emplace_back(memory(1), memory::Place(), size_bytes);
    sent.push_back(announce(out.back().buffer()));
    // An address that this process does not have: the sender copies what the receiver cannot.
    if (sent[i].plan.source && random() % 8 == 0) sent[i].plan.source->buffer.allocation_base = 8;
  }
  std::vector<std::size_t> order(sent.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  std::vector<OutcomePtr> all;
  for (const std::size_t i : order) {
    all.push_back(land(sent[i], in[i].buffer()));
    all.push_back(sent[i].outcome);
    for (std::uint32_t turns = random() % 30; turns > 0; --turns) {
      machine(static_cast<int>(random() % 2)).progress();
    }
  }
  finish(all);
  for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(in[i].now(), out[i].filled()) << i;
  EXPECT_GT(shared(), 50u);
}

TEST_P(AnnouncedTest, NamedDeviceMemoryIsCopiedWhileItsSenderComputes) {
  start_announced();
  TestMemory from(memory(0), kDevice, 5000, 5);
  TestMemory first(memory(1), kDevice, 5000);
  expect_message(from, first);
  const Sent sent = announce(from.buffer());
  ASSERT_TRUE(sent.plan.source);
  TestMemory to = refusing(1, 5000);
  const OutcomePtr received = land(sent, to.buffer());
  progress(1);
  EXPECT_TRUE(received->done);
  EXPECT_EQ(to.now(), from.filled());
  finish({sent.outcome});
  EXPECT_EQ(count(0, TransferPath::kPulled), 1u);
}

TEST_P(AnnouncedTest, NamedDeviceMemoryIsPushedByASenderThatWaits) {
  UsedMemory used(*this);
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = copies(0);
    const Sent sent = announce_again(used);
    const OutcomePtr received = land(sent, used.to.buffer());
    progress(0);
    finish({sent.outcome, received});
    EXPECT_EQ(used.to.now(), used.from.filled());
    EXPECT_EQ(copies(0), before + 1);
  }
  EXPECT_EQ(count(0, TransferPath::kPulled), 0u);
}

TEST_P(AnnouncedTest, NamedDeviceMemoryIsPulledFromASenderThatComputes) {
  UsedMemory used(*this);
  for (int i = 0; i < 20; ++i) {
    const Sent sent = announce_again(used);
    const OutcomePtr received = land(sent, used.to.buffer());
    for (int round = 0; round < 1000 && !received->done; ++round) progress(1);
    EXPECT_TRUE(received->done);
    EXPECT_FALSE(sent.outcome->done);
    EXPECT_EQ(used.to.now(), used.from.filled());
    finish({sent.outcome});
  }
  EXPECT_EQ(count(0, TransferPath::kPulled), 20u);
}

// It finds another size posted than its own, so the receiver copies what the name says.
TEST_P(AnnouncedTest, ASenderThatCannotPushIsPulledFrom) {
  UsedMemory used(*this);
  Sent sent = announce_again(used);
  sent.plan.source->buffer.size_bytes = 4000;
  const OutcomePtr received = land(sent, part_of(used.to.buffer(), 0, 4000));
  finish({sent.outcome, received});
  EXPECT_TRUE(received->status.ok());
  std::vector<std::uint8_t> expected = used.from.filled();
  std::fill(expected.begin() + 4000, expected.end(), std::uint8_t{0});
  EXPECT_EQ(used.to.now(), expected);
  EXPECT_EQ(count(0, TransferPath::kPulled), 1u);
}

TEST_P(AnnouncedTest, DeviceMemoryThatIsNamedWronglyIsCopiedByItsSender) {
  start_announced();
  TestMemory from(memory(0), kDevice, 5000, 5);
  TestMemory first(memory(1), kDevice, 5000);
  expect_message(from, first);
  Sent sent = announce(from.buffer());
  ASSERT_TRUE(sent.plan.source);
  sent.plan.source->buffer.offset_bytes = 1 << 20;
  TestMemory to(memory(1), kDevice, 5000);
  const OutcomePtr received = land(sent, to.buffer());
  finish({sent.outcome, received});
  EXPECT_EQ(to.now(), from.filled());
  EXPECT_EQ(count(0, TransferPath::kPulled), 0u);
  EXPECT_EQ(copies(0), 2u);
}

TEST_P(AnnouncedTest, ACopyOfNamedMemoryThatFailsFailsTheReceive) {
  start_announced();
  TestMemory from(memory(0), kDevice, 5000, 5);
  TestMemory first(memory(1), kDevice, 5000);
  expect_message(from, first);
  const Sent sent = announce(from.buffer());
  ASSERT_TRUE(sent.plan.source);
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  testing::emulated(memory(1)).set_faults(faults);
  TestMemory to(memory(1), kDevice, 5000);
  const OutcomePtr received = land(sent, to.buffer());
  finish({sent.outcome, received});
  EXPECT_TRUE(received->status.failed());
}

// Host memory that its owner may move until it is fixed.
struct MovableTest : AnnouncedTest {
  static constexpr std::size_t kBytes = 1'000'000;
  MovableTest() {
    TestMemory first(memory(0), {}, kBytes, 1);
    TestMemory landed(memory(1), {}, kBytes);
    expect_message(first, landed);
    settle();
  }
  Sent announce_movable() {
    Sent sent{
        {next_, kStream | next_}, plan(from.buffer(), /*is_movable=*/true), std::make_shared<Outcome>()};
    ++next_;
    all_.push_back(sent.outcome);
    const memory::ConstBuffer buffer = from.buffer();
    EXPECT_TRUE(sent.plan.waits && !sent.plan.source);
    source = {static_cast<const std::byte*>(buffer.data), buffer.size_bytes, &read_bytes};
    sent.outcome->started(
        peer_memory(0).send_announced_movable(1, kStream, sent.message, source, sent.outcome.get()),
        buffer.size_bytes);
    return sent;
  }
  // The owner moves the bytes, and changes them where they were.
  void move_source() {
    std::ranges::copy_n(source.data, kBytes, moved.begin());
    source.data = moved.data();
    std::fill_n(static_cast<std::byte*>(from.buffer().data), kBytes, std::byte{0xee});
  }

  TestMemory from{memory(0), {}, kBytes, 3};
  std::vector<std::uint8_t> expected = from.filled();
  std::vector<std::byte> moved = std::vector<std::byte>(kBytes);
  MovableSource source;
  std::uint64_t read_bytes = 0;
  TestMemory to{memory(1), {}, kBytes};
};

TEST_P(MovableTest, IsFixedFromTheAnswerToTheEnd) {
  const Sent sent = announce_movable();
  settle();
  EXPECT_FALSE(source.is_fixed) << "the receive has not been started";
  EXPECT_EQ(read_bytes, 0u);
  bool was_fixed = false;
  sent.outcome->then = [&] { was_fixed = source.is_fixed; };
  finish({sent.outcome, land(sent, to.buffer())});
  EXPECT_TRUE(was_fixed);
  EXPECT_EQ(read_bytes, kBytes);
  EXPECT_EQ(to.now(), expected);
  EXPECT_EQ(count(0, TransferPath::kShared, Kind::kHost), 1u);
}

TEST_P(MovableTest, IsReadWhereItWasMoved) {
  const Sent sent = announce_movable();
  move_source();
  finish({sent.outcome, land(sent, to.buffer())});
  EXPECT_EQ(to.now(), expected);
  EXPECT_EQ(count(0, TransferPath::kShared, Kind::kHost), 1u);
}

TEST_P(MovableTest, TakesItsTagWhereTheReceiverPostsNothing) {
  const Sent sent = announce_movable();
  move_source();
  peer_memory(1).turn_off();
  finish({sent.outcome, land(sent, to.buffer())});
  EXPECT_FALSE(source.is_fixed);
  EXPECT_EQ(to.now(), expected);
  EXPECT_EQ(count(0, TransferPath::kShared, Kind::kHost), 0u);
}

TEST_P(AnnouncedTest, LargeMemoryOfTwoKindsTakesItsTag) {
  TestMemory first(memory(0), {}, 1'000'000, 3);
  TestMemory landed(memory(1), {}, 1'000'000);
  expect_message(first, landed);
  settle();
  TestMemory device_in(memory(1), kDevice, 1'000'000);
  expect_message(first, device_in);
  TestMemory device_out(memory(0), kDevice, 1'000'000, 5);
  expect_message(device_out, landed);
  EXPECT_EQ(copies(0) + count(0, TransferPath::kShared, Kind::kHost), 0u);
}

TEST_P(AnnouncedTest, WithPeerMemoryOffAtOneEndLargeHostMemoryTakesItsTag) {
  TestMemory from(memory(0), {}, 1'000'000, 3);
  TestMemory to(memory(1), {}, 1'000'000);
  expect_message(from, to);
  settle();
  const Sent sent = announce(from.buffer());
  EXPECT_TRUE(sent.plan.waits);
  peer_memory(1).turn_off();
  TestMemory again(memory(1), {}, 1'000'000);
  finish({sent.outcome, land(sent, again.buffer())});
  EXPECT_EQ(again.now(), from.filled());
  EXPECT_EQ(count(0, TransferPath::kShared, Kind::kHost), 0u);
}

TEST_P(AnnouncedTest, ReceivesStartInAnyOrderAndMoreThanThereAreSlots) {
  start_announced();
  std::mt19937 random(1);
  std::vector<TestMemory> out;
  std::vector<TestMemory> in;
  std::vector<Sent> sent;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::size_t size_bytes = 1 + random() % 9000;
    out.push_back(i % 3 == 0 ? refusing(0, size_bytes, static_cast<std::uint8_t>(i))
                             : TestMemory(memory(0), kDevice, size_bytes, static_cast<std::uint8_t>(i)));
    in.push_back(i % 2 == 0 ? refusing(1, size_bytes) : TestMemory(memory(1), kDevice, size_bytes));
    sent.push_back(announce(out.back().buffer()));
  }
  std::vector<std::size_t> order(sent.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::shuffle(order, random);
  std::vector<OutcomePtr> all;
  for (const std::size_t i : order) {
    all.push_back(land(sent[i], in[i].buffer()));
    all.push_back(sent[i].outcome);
    if (random() % 3 == 0) step();
  }
  finish(all);
  for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(in[i].now(), out[i].filled()) << i;
  EXPECT_GT(copies(0), 20u);
  EXPECT_GT(count(0, TransferPath::kBounced), 20u);
}

TEST_P(AnnouncedTest, ASendThatFailsIsEndedByAnEmptyMessage) {
  start_announced();
  TestMemory from(memory(0), kDevice, 100, 3);
  TestMemory to(memory(1), kDevice, 100, 50);
  const Sent sent = announce(from.buffer());
  sent.outcome->then = [&] {
    auto empty = std::make_shared<Outcome>();
    all_.push_back(empty);
    empty->started(machine(0).tag_send(1, sent.message.tag, {}, empty.get()), 0);
  };
  memory::EmulatedFaults faults;
  faults.fail_copy = 1;
  testing::emulated(memory(0)).set_faults(faults);
  const OutcomePtr received = land(sent, to.buffer());
  finish({sent.outcome, received});
  EXPECT_TRUE(sent.outcome->status.failed());
  EXPECT_EQ(received->size_bytes, 0u);
  EXPECT_EQ(to.now(), to.filled());
}

TEST_P(AnnouncedTest, ASendWhoseReceiveNeverComesEndsWithTheMachine) {
  start_announced();
  TestMemory from(memory(0), kDevice, 100, 3);
  const Sent sent = announce(from.buffer());
  settle();
  EXPECT_FALSE(sent.outcome->done);
  close();
  EXPECT_EQ(sent.outcome->status.code(), StatusCode::kClosed);
}

INSTANTIATE_TEST_SUITE_P(Machines, MovableTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });
INSTANTIATE_TEST_SUITE_P(Machines, AnnouncedTest, ::testing::Values("loopback", "ucx"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace weft::machine
