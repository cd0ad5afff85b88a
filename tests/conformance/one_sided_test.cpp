// Put, get, atomics and flush between memory of every kind.
#include <algorithm>
#include <cstring>

#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

using base::StatusCode;
using machine::AtomicOperation;
using machine::RemoteMemory;
using memory::Buffer;
using memory::Kind;

class OneSidedTest : public ConformanceTest {
 protected:
  // The target of puts and gets: `kind()` memory of PE 1.
  RemoteMemory publish(World& world, const Buffer& target) {
    auto remote = world.machine(1).register_memory(target);
    EXPECT_TRUE(remote.ok()) << remote.status().to_string();
    return *remote;
  }
  void flush(World& world, int pe) {
    CheckedOperation operation;
    operation.start(world.machine(pe).flush(&operation));
    ASSERT_TRUE(world.finish(operation));
    ASSERT_TRUE(operation.status().ok()) << operation.status().to_string();
  }
};

TEST_P(OneSidedTest, PutFromEitherSideOfTheHost) {
  World world = make_world(2);
  for (Kind local_kind : {kind(), Kind::kHost}) {
    for (std::size_t size : kSizes) {
      Buffer target = world.buffer(1, kind(), pattern(size + 16, 1));
      const RemoteMemory remote = publish(world, target);
      Buffer local = world.buffer(0, local_kind, pattern(size, size));
      CheckedOperation put;
      put.start(world.machine(0).put(1, local, remote, 8, &put));
      ASSERT_TRUE(world.finish(put)) << size;
      ASSERT_TRUE(put.status().ok()) << put.status().to_string();
      flush(world, 0);
      auto expected = pattern(size + 16, 1);
      std::ranges::copy(pattern(size, size), expected.begin() + 8);
      EXPECT_EQ(world.read(1, target), expected) << size;
      EXPECT_TRUE(world.machine(1).deregister_memory(remote).ok());
    }
  }
}

TEST_P(OneSidedTest, GetToEitherSideOfTheHost) {
  World world = make_world(2);
  for (Kind local_kind : {kind(), Kind::kHost}) {
    for (std::size_t size : kSizes) {
      const auto there = pattern(size + 16, size);
      Buffer source = world.buffer(1, kind(), there);
      const RemoteMemory remote = publish(world, source);
      Buffer local = world.buffer(0, local_kind, size);
      CheckedOperation get;
      get.start(world.machine(0).get(1, local, remote, 8, &get));
      ASSERT_TRUE(world.finish(get)) << size;
      ASSERT_TRUE(get.status().ok()) << get.status().to_string();
      EXPECT_TRUE(std::ranges::equal(world.read(0, local), std::span(there).subspan(8, size))) << size;
      EXPECT_TRUE(world.machine(1).deregister_memory(remote).ok());
    }
  }
}

TEST_P(OneSidedTest, HostMemoryFromThisKind) {
  World world = make_world(2);
  constexpr std::size_t kSize = 70'000;
  Buffer target = world.buffer(1, Kind::kHost, kSize);
  const RemoteMemory remote = publish(world, target);
  Buffer local = world.buffer(0, kind(), pattern(kSize, 1));
  CheckedOperation put;
  put.start(world.machine(0).put(1, local, remote, 0, &put));
  flush(world, 0);
  ASSERT_TRUE(world.finish(put));
  EXPECT_EQ(world.read(1, target), pattern(kSize, 1));
  Buffer back = world.buffer(0, kind(), kSize);
  CheckedOperation get;
  get.start(world.machine(0).get(1, back, remote, 0, &get));
  ASSERT_TRUE(world.finish(get));
  EXPECT_EQ(world.read(0, back), pattern(kSize, 1));
}

TEST_P(OneSidedTest, AFlushCoversEveryPutBeforeIt) {
  World world = make_world(2);
  constexpr std::size_t kCount = 200;
  constexpr std::size_t kSize = 500;
  Buffer target = world.buffer(1, kind(), kCount * kSize);
  const RemoteMemory remote = publish(world, target);
  const auto sent = pattern(kCount * kSize, 4);
  Buffer local = world.buffer(0, kind(), sent);
  std::deque<CheckedOperation> puts(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    Buffer part{static_cast<std::byte*>(local.data) + i * kSize, kSize, local.place, nullptr};
    puts[i].start(world.machine(0).put(1, part, remote, i * kSize, &puts[i]));
  }
  flush(world, 0);
  EXPECT_EQ(world.read(1, target), sent);
  ASSERT_TRUE(world.finish_all(puts));
}

TEST_P(OneSidedTest, AFlushOfOnePeCoversThePutsToIt) {
  World world = make_world(3);
  const auto sent = pattern(5000, 4);
  Buffer local = world.buffer(0, kind(), sent);
  for (const int pe : {1, 2, 0}) {
    Buffer target = world.buffer(pe, kind(), sent.size());
    const RemoteMemory remote = world.machine(pe).register_memory(target).value();
    CheckedOperation put;
    put.start(world.machine(0).put(pe, local, remote, 0, &put));
    CheckedOperation flush;
    flush.start(world.machine(0).flush(pe, &flush));
    ASSERT_TRUE(world.finish(flush));
    EXPECT_TRUE(flush.status().ok()) << flush.status().to_string();
    EXPECT_EQ(world.read(pe, target), sent);
    ASSERT_TRUE(world.finish(put));
  }
  CheckedOperation flush;
  flush.start(world.machine(0).flush(3, &flush));
  EXPECT_TRUE(flush.status().failed()) << "there is no PE 3";
}

TEST_P(OneSidedTest, APutAndFlushIsOverWhenItsDataIsThere) {
  World world = make_world(2);
  for (Kind local_kind : {kind(), Kind::kHost}) {
    for (std::size_t size : kSizes) {
      Buffer target = world.buffer(1, kind(), pattern(size + 16, 1));
      const RemoteMemory remote = publish(world, target);
      CheckedOperation put;
      put.start(world.machine(0).put_and_flush(1, world.buffer(0, local_kind, pattern(size, size)), remote, 8,
                                               &put));
      ASSERT_TRUE(world.finish(put)) << size;
      ASSERT_TRUE(put.status().ok()) << put.status().to_string();
      auto expected = pattern(size + 16, 1);
      std::ranges::copy(pattern(size, size), expected.begin() + 8);
      EXPECT_EQ(world.read(1, target), expected) << size;
      EXPECT_TRUE(world.machine(1).deregister_memory(remote).ok());
    }
  }
}

TEST_P(OneSidedTest, ManyPutsAndFlushesAtOnce) {
  World world = make_world(3);
  constexpr std::size_t kCount = 40;
  constexpr std::size_t kSize = 100'000;  // some wait, and others do not
  for (const int pe : {0, 1, 2}) {
    Buffer target = world.buffer(pe, kind(), kCount * kSize);
    const RemoteMemory remote = world.machine(pe).register_memory(target).value();
    const auto sent = pattern(kCount * kSize, 4);
    Buffer local = world.buffer(0, kind(), sent);
    std::deque<CheckedOperation> puts(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      Buffer part{static_cast<std::byte*>(local.data) + i * kSize, i % 2 == 0 ? kSize : kSize / 1000,
                  local.place, nullptr};
      puts[i].start(world.machine(0).put_and_flush(pe, part, remote, i * kSize, &puts[i]));
    }
    ASSERT_TRUE(world.finish_all(puts));
    const auto arrived = world.read(pe, target);
    for (std::size_t i = 0; i < kCount; ++i) {
      ASSERT_TRUE(puts[i].status().ok()) << puts[i].status().to_string();
      const std::size_t size = i % 2 == 0 ? kSize : kSize / 1000;
      EXPECT_TRUE(
          std::equal(sent.begin() + i * kSize, sent.begin() + i * kSize + size, arrived.begin() + i * kSize))
          << i;
    }
  }
}

TEST_P(OneSidedTest, OutsideTheRegisteredRangeIsAnError) {
  World world = make_world(2);
  const RemoteMemory remote = publish(world, world.buffer(1, kind(), 100));
  Buffer local = world.buffer(0, Kind::kHost, 64);
  for (std::size_t offset : {std::size_t{37}, std::size_t{101}, ~std::size_t{0}}) {
    CheckedOperation put;
    put.start(world.machine(0).put(1, local, remote, offset, &put));
    EXPECT_EQ(put.status().code(), StatusCode::kOutOfRange) << offset;
    CheckedOperation flushed;
    flushed.start(world.machine(0).put_and_flush(1, local, remote, offset, &flushed));
    EXPECT_EQ(flushed.status().code(), StatusCode::kOutOfRange) << offset;
    CheckedOperation get;
    get.start(world.machine(0).get(1, local, remote, offset, &get));
    EXPECT_EQ(get.status().code(), StatusCode::kOutOfRange) << offset;
  }
}

TEST_P(OneSidedTest, ZeroBytes) {
  World world = make_world(2);
  const RemoteMemory remote = publish(world, world.buffer(1, kind(), 100));
  CheckedOperation put;
  put.start(world.machine(0).put(1, {}, remote, 100, &put));
  ASSERT_TRUE(world.finish(put));
  EXPECT_TRUE(put.status().ok());
  CheckedOperation flushed;
  flushed.start(world.machine(0).put_and_flush(1, {}, remote, 100, &flushed));
  ASSERT_TRUE(world.finish(flushed));
  EXPECT_TRUE(flushed.status().ok());
}

TEST_P(OneSidedTest, DeregisteringTwiceIsAnError) {
  World world = make_world(2);
  const RemoteMemory remote = publish(world, world.buffer(1, kind(), 100));
  EXPECT_TRUE(world.machine(1).deregister_memory(remote).ok());
  EXPECT_EQ(world.machine(1).deregister_memory(remote).code(), StatusCode::kNotFound);
}

TEST_P(OneSidedTest, DeregisteringTwiceLeavesAnotherRegistrationAlone) {
  World world = make_world(2);
  const std::vector<std::byte> zeros(64);
  const Buffer target = world.buffer(1, kind(), zeros);
  const RemoteMemory first = publish(world, target);
  const RemoteMemory second = publish(world, target);
  EXPECT_TRUE(world.machine(1).deregister_memory(first).ok());
  EXPECT_EQ(world.machine(1).deregister_memory(first).code(), StatusCode::kNotFound);
  CheckedOperation put;
  put.start(world.machine(0).put(1, world.buffer(0, kind(), pattern(64, 1)), second, 0, &put));
  ASSERT_TRUE(world.finish(put));
  flush(world, 0);
  EXPECT_EQ(world.read(1, target), pattern(64, 1));
  if (kind() == Kind::kHost) {
    CheckedOperation add;
    add.start(world.machine(0).atomic(1, AtomicOperation::kAdd, second, 8, 1, 0, nullptr, &add));
    ASSERT_TRUE(world.finish(add));
    EXPECT_TRUE(add.status().ok()) << add.status().to_string();
  }
  EXPECT_TRUE(world.machine(1).deregister_memory(second).ok());
}

TEST_P(OneSidedTest, MessagesFromRegisteredMemory) {
  World world = make_world(2);
  for (std::size_t size : kSizes) {
    Buffer source = world.buffer(1, kind(), pattern(size, size));
    const RemoteMemory remote = publish(world, source);
    Buffer to = world.buffer(0, kind(), size);
    CheckedOperation send;
    CheckedOperation receive;
    receive.start(world.machine(0).tag_receive(1, machine::kFullTagMask, to, &receive));
    send.start(world.machine(1).tag_send(0, 1, source, &send));
    ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); })) << size;
    EXPECT_EQ(world.read(0, to), pattern(size, size));
    EXPECT_TRUE(world.machine(1).deregister_memory(remote).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(All, OneSidedTest, every_machine_and_kind(), param_name);

class AtomicTest : public ConformanceTest {};

TEST_P(AtomicTest, EveryOperationGivesTheOldValue) {
  World world = make_world(2);
  std::uint64_t word[2] = {0, 0};
  auto remote = world.machine(1).register_memory({word, sizeof word, {}, nullptr});
  ASSERT_TRUE(remote.ok());
  const struct {
    AtomicOperation operation;
    std::uint64_t operand, compare, before, after;
  } cases[] = {
      {AtomicOperation::kAdd, 5, 0, 7, 12},        {AtomicOperation::kAdd, ~std::uint64_t{0}, 0, 7, 6},
      {AtomicOperation::kSwap, 5, 0, 7, 5},        {AtomicOperation::kCompareSwap, 5, 7, 7, 5},
      {AtomicOperation::kCompareSwap, 5, 8, 7, 7}, {AtomicOperation::kAnd, 12, 0, 7, 4},
      {AtomicOperation::kOr, 8, 0, 7, 15},         {AtomicOperation::kXor, 2, 0, 7, 5},
  };
  for (const auto& test : cases) {
    for (bool wants_result : {true, false}) {
      word[1] = test.before;
      std::uint64_t old = 99;
      CheckedOperation atomic;
      atomic.start(world.machine(0).atomic(1, test.operation, *remote, 8, test.operand, test.compare,
                                           wants_result ? &old : nullptr, &atomic));
      ASSERT_TRUE(world.finish(atomic));
      ASSERT_TRUE(atomic.status().ok()) << atomic.status().to_string();
      CheckedOperation flush;
      flush.start(world.machine(0).flush(&flush));
      ASSERT_TRUE(world.finish(flush));
      EXPECT_EQ(word[1], test.after) << static_cast<int>(test.operation);
      EXPECT_EQ(old, wants_result ? test.before : 99) << static_cast<int>(test.operation);
    }
  }
  EXPECT_EQ(word[0], 0u);
}

TEST_P(AtomicTest, ManyAtOnceAddUp) {
  World world = make_world(4);
  std::uint64_t word = 0;
  auto remote = world.machine(3).register_memory({&word, sizeof word, {}, nullptr});
  ASSERT_TRUE(remote.ok());
  constexpr std::size_t kEach = 300;
  std::deque<CheckedOperation> operations(4 * kEach);
  std::vector<std::uint64_t> old(operations.size());
  for (std::size_t i = 0; i < operations.size(); ++i) {
    operations[i].start(world.machine(static_cast<int>(i % 4))
                            .atomic(3, AtomicOperation::kAdd, *remote, 0, 1, 0, &old[i], &operations[i]));
  }
  ASSERT_TRUE(world.finish_all(operations));
  EXPECT_EQ(word, operations.size());
  std::ranges::sort(old);
  for (std::size_t i = 0; i < old.size(); ++i) ASSERT_EQ(old[i], i) << "each old value is seen once";
}

TEST_P(AtomicTest, DeviceMemoryAndOddOffsetsAreRefused) {
  World world = make_world(2);
  std::uint64_t word[2] = {0, 0};
  auto host = world.machine(1).register_memory({word, sizeof word, {}, nullptr});
  auto device = world.machine(1).register_memory(world.buffer(1, Kind::kEmulated, 64));
  ASSERT_TRUE(host.ok() && device.ok());
  CheckedOperation odd;
  odd.start(world.machine(0).atomic(1, AtomicOperation::kAdd, *host, 4, 1, 0, nullptr, &odd));
  EXPECT_EQ(odd.status().code(), StatusCode::kInvalidArgument);
  CheckedOperation far;
  far.start(world.machine(0).atomic(1, AtomicOperation::kAdd, *device, 0, 1, 0, nullptr, &far));
  EXPECT_EQ(far.status().code(), StatusCode::kUnsupported);
}

INSTANTIATE_TEST_SUITE_P(All, AtomicTest, every_machine(), param_name);

}  // namespace
}  // namespace weft::conformance
