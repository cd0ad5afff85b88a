// Tagged messages: matching, order, sizes, and many at once.
#include <algorithm>
#include <numeric>
#include <span>

#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

using base::StatusCode;
using machine::kFullTagMask;
using machine::make_tag;
using machine::Tag;
using memory::Buffer;

constexpr std::size_t kTaggedSizes[] = {0, 1, 8, 1000, 4096, 65'536, 1'000'003};

class TagTest : public ConformanceTest {};

TEST_P(TagTest, ArrivesWhenTheReceiveIsPostedFirst) {
  World world = make_world(2);
  for (std::size_t size : kTaggedSizes) {
    const auto sent = pattern(size, size + 1);
    Buffer from = world.buffer(0, kind(), sent);
    Buffer to = world.buffer(1, kind(), size);
    CheckedOperation receive;
    CheckedOperation send;
    receive.start(world.machine(1).tag_receive(7, kFullTagMask, to, &receive));
    send.start(world.machine(0).tag_send(1, 7, from, &send));
    ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); })) << size;
    EXPECT_TRUE(send.status().ok() && receive.status().ok())
        << send.status().to_string() << receive.status().to_string();
    if (receive.was_pending()) {
      EXPECT_EQ(receive.size_bytes(), size);
    }
    EXPECT_EQ(world.read(1, to), sent) << size;
  }
}

TEST_P(TagTest, ArrivesWhenTheMessageIsThereFirst) {
  World world = make_world(2);
  for (std::size_t size : kTaggedSizes) {
    const auto sent = pattern(size, size + 2);
    Buffer from = world.buffer(0, kind(), sent);
    Buffer to = world.buffer(1, kind(), size);
    CheckedOperation receive;
    CheckedOperation send;
    send.start(world.machine(0).tag_send(1, 7, from, &send));
    for (int round = 0; round < 1000; ++round) world.progress();
    receive.start(world.machine(1).tag_receive(7, kFullTagMask, to, &receive));
    ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); })) << size;
    EXPECT_TRUE(send.status().ok() && receive.status().ok());
    EXPECT_EQ(world.read(1, to), sent) << size;
  }
}

TEST_P(TagTest, ASourceThatMovesIsReadWhereItIsThen) {
  World world = make_world(2);
  const bool is_apart = std::get<0>(GetParam()) == kApart;
  ASSERT_EQ(world.machine(0).can_move_source(1), !is_apart);
  if (is_apart) return;  // between hosts UCX sends from the source itself
  for (std::size_t size : kTaggedSizes) {
    const auto sent = pattern(size, size + 5);
    auto first = sent;
    Buffer to = world.buffer(1, kind(), size);
    CheckedOperation receive;
    CheckedOperation send;
    std::uint64_t read_bytes = 0;
    machine::MovableSource source{first.data(), size, &read_bytes};
    send.start(world.machine(0).tag_send_movable(1, 7, source, &send));
    for (int round = 0; round < 100; ++round) world.progress();
    const auto second = first;
    source.data = second.data();
    std::ranges::fill(first, std::byte{0xee});
    receive.start(world.machine(1).tag_receive(7, kFullTagMask, to, &receive));
    ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); })) << size;
    EXPECT_TRUE(send.status().ok() && receive.status().ok());
    EXPECT_EQ(world.read(1, to), sent) << size;
    EXPECT_GE(read_bytes, size);
  }
}

TEST_P(TagTest, ReachesTheSendingPeItself) {
  World world = make_world(1);
  for (std::size_t size : {kSmall, kLarge}) {
    const auto sent = pattern(size, 3);
    Buffer from = world.buffer(0, kind(), sent);
    Buffer to = world.buffer(0, kind(), size);
    for (bool receive_first : {true, false}) {
      CheckedOperation receive;
      CheckedOperation send;
      if (receive_first) receive.start(world.machine(0).tag_receive(1, kFullTagMask, to, &receive));
      send.start(world.machine(0).tag_send(0, 1, from, &send));
      if (!receive_first) receive.start(world.machine(0).tag_receive(1, kFullTagMask, to, &receive));
      ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); }));
      EXPECT_TRUE(send.status().ok() && receive.status().ok());
      EXPECT_EQ(world.read(0, to), sent);
    }
  }
}

TEST_P(TagTest, MatchesByTagWhateverTheOrder) {
  World world = make_world(2);
  constexpr int kCount = 8;
  for (std::size_t size : {kSmall, kLarge}) {
    std::deque<CheckedOperation> operations(2 * kCount);
    std::vector<Buffer> to;
    for (int i = 0; i < kCount; ++i) {
      auto& send = operations[static_cast<std::size_t>(i)];
      Buffer from = world.buffer(0, kind(), pattern(size, static_cast<std::uint64_t>(i)));
      send.start(world.machine(0).tag_send(1, static_cast<Tag>(i), from, &send));
    }
    for (int i = 0; i < kCount; ++i) {
      auto& receive = operations[static_cast<std::size_t>(kCount + i)];
      to.push_back(world.buffer(1, kind(), size));
      const Tag tag = static_cast<Tag>((i * 3 + 5) % kCount);
      receive.start(world.machine(1).tag_receive(tag, kFullTagMask, to.back(), &receive));
      if (i == kCount / 2) {
        for (int round = 0; round < 100; ++round) world.progress();
      }
    }
    ASSERT_TRUE(world.finish_all(operations));
    for (int i = 0; i < kCount; ++i) {
      const auto seed = static_cast<std::uint64_t>((i * 3 + 5) % kCount);
      EXPECT_EQ(world.read(1, to[static_cast<std::size_t>(i)]), pattern(size, seed));
    }
  }
}

TEST_P(TagTest, EqualTagsMatchInTheOrderOfSending) {
  World world = make_world(2);
  constexpr std::size_t kCount = 40;
  std::deque<CheckedOperation> operations(2 * kCount);
  std::vector<Buffer> to;
  const auto size_of = [](std::size_t i) { return i % 3 == 0 ? kLarge : kSmall + i; };
  for (std::size_t i = 0; i < kCount; ++i) {
    // Receives before, among and after the sends.
    if (i % 2 == 0) {
      for (std::size_t k : {i, i + 1}) {
        to.push_back(world.buffer(1, kind(), kLarge));
        operations[k].start(world.machine(1).tag_receive(9, kFullTagMask, to[k], &operations[k]));
      }
    }
    Buffer from = world.buffer(0, kind(), pattern(size_of(i), i));
    auto& send = operations[kCount + i];
    send.start(world.machine(0).tag_send(1, 9, from, &send));
    if (i % 5 == 0) world.progress();
  }
  ASSERT_TRUE(world.finish_all(operations));
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(operations[i].status().ok()) << operations[i].status().to_string();
    if (operations[i].was_pending()) {
      EXPECT_EQ(operations[i].size_bytes(), size_of(i)) << i;
    }
    EXPECT_EQ(world.read(1, to[i], size_of(i)), pattern(size_of(i), i)) << i;
  }
}

TEST_P(TagTest, MaskLeavesBitsOpen) {
  World world = make_world(2);
  Buffer from = world.buffer(0, kind(), pattern(kSmall, 1));
  Buffer to = world.buffer(1, kind(), kSmall);
  CheckedOperation miss;
  CheckedOperation hit;
  CheckedOperation send;
  miss.start(world.machine(1).tag_receive(0x2200, 0xff00, to, &miss));
  hit.start(world.machine(1).tag_receive(0x1100, 0xff00, to, &hit));
  send.start(world.machine(0).tag_send(1, 0x11aa, from, &send));
  ASSERT_TRUE(world.finish(hit));
  EXPECT_FALSE(miss.done());
  EXPECT_EQ(world.read(1, to), pattern(kSmall, 1));
  world.machine(1).cancel(&miss);
  ASSERT_TRUE(world.finish(miss));
  EXPECT_EQ(miss.status().code(), StatusCode::kCancelled);
}

TEST_P(TagTest, ShorterMessageTellsItsSize) {
  World world = make_world(2);
  for (std::size_t size : {std::size_t{0}, kSmall, kLarge}) {
    for (bool receive_first : {true, false}) {
      Buffer from = world.buffer(0, kind(), pattern(size, 5));
      Buffer to = world.buffer(1, kind(), 2 * kLarge);
      CheckedOperation receive;
      CheckedOperation send;
      if (receive_first) receive.start(world.machine(1).tag_receive(1, kFullTagMask, to, &receive));
      send.start(world.machine(0).tag_send(1, 1, from, &send));
      for (int round = 0; round < 200; ++round) world.progress();
      if (!receive_first) receive.start(world.machine(1).tag_receive(1, kFullTagMask, to, &receive));
      ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); }));
      EXPECT_TRUE(receive.was_pending()) << "a receive that is not full has to tell its size";
      EXPECT_EQ(receive.size_bytes(), size);
      EXPECT_EQ(world.read(1, to, size), pattern(size, 5));
    }
  }
}

TEST_P(TagTest, LongerMessageIsAnErrorNamingBothSizes) {
  World world = make_world(2);
  for (std::size_t size : {kSmall, std::size_t{6000}, kLarge}) {
    for (bool receive_first : {true, false}) {
      Buffer from = world.buffer(0, kind(), pattern(size, 5));
      Buffer to = world.buffer(1, kind(), size - 1);
      CheckedOperation receive;
      CheckedOperation send;
      if (receive_first) receive.start(world.machine(1).tag_receive(1, kFullTagMask, to, &receive));
      send.start(world.machine(0).tag_send(1, 1, from, &send));
      for (int round = 0; round < 200; ++round) world.progress();
      if (!receive_first) receive.start(world.machine(1).tag_receive(1, kFullTagMask, to, &receive));
      ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); })) << size << receive_first;
      EXPECT_EQ(receive.status().code(), StatusCode::kTruncated);
      const std::string message(receive.status().message());
      EXPECT_NE(message.find(std::to_string(size) + " bytes"), std::string::npos) << message;
      EXPECT_NE(message.find(std::to_string(size - 1) + " bytes"), std::string::npos) << message;
      EXPECT_TRUE(send.status().ok()) << send.status().to_string();
    }
  }
}

TEST_P(TagTest, ThousandsInFlight) {
  World world = make_world(2);
  constexpr std::size_t kCount = 3000;
  constexpr std::size_t kSize = 96;
  std::deque<CheckedOperation> operations(2 * kCount);
  const auto sent = pattern(kCount * kSize, 11);
  Buffer from = world.buffer(0, kind(), sent);
  Buffer to = world.buffer(1, kind(), kCount * kSize);
  const auto part = [&](const Buffer& whole, std::size_t i) {
    return Buffer{static_cast<std::byte*>(whole.data) + i * kSize, kSize, whole.place, nullptr};
  };
  for (std::size_t i = 0; i < kCount; ++i) {
    auto& send = operations[i];
    send.start(world.machine(0).tag_send(1, i, part(from, i), &send));
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::size_t k = kCount - 1 - i;
    auto& receive = operations[kCount + k];
    receive.start(world.machine(1).tag_receive(k, kFullTagMask, part(to, k), &receive));
  }
  ASSERT_TRUE(world.finish_all(operations));
  EXPECT_EQ(world.read(1, to), sent);
}

TEST_P(TagTest, CountersWrap) {
  World world = make_world(2);
  const auto run = [&](auto tag_of) {
    constexpr std::uint32_t kCount = 8;
    std::deque<CheckedOperation> operations(2 * kCount);
    std::vector<Buffer> to;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      Buffer from = world.buffer(0, kind(), pattern(kSmall, i));
      operations[i].start(world.machine(0).tag_send(1, tag_of(i), from, &operations[i]));
    }
    for (std::uint32_t i = 0; i < kCount; ++i) {
      to.push_back(world.buffer(1, kind(), kSmall));
      auto& receive = operations[kCount + i];
      receive.start(world.machine(1).tag_receive(tag_of(i), kFullTagMask, to.back(), &receive));
    }
    ASSERT_TRUE(world.finish_all(operations));
    for (std::uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(world.read(1, to[i]), pattern(kSmall, i));
  };
  run([](std::uint32_t i) { return make_tag(2, std::uint64_t{0xffff'fffcu + i}); });
  run([](std::uint32_t i) { return make_tag(machine::kMaxTagType, machine::kTagValueMask - 3 + i); });
}

TEST_P(TagTest, EveryPairOfFour) {
  World world = make_world(4);
  std::deque<CheckedOperation> operations;
  std::vector<std::tuple<int, Buffer, std::uint64_t>> expected;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      const auto tag = static_cast<Tag>(from * 4 + to);
      Buffer source = world.buffer(from, kind(), pattern(kSmall, tag));
      Buffer target = world.buffer(to, kind(), kSmall);
      auto& send = operations.emplace_back();
      send.start(world.machine(from).tag_send(to, tag, source, &send));
      auto& receive = operations.emplace_back();
      receive.start(world.machine(to).tag_receive(tag, kFullTagMask, target, &receive));
      expected.emplace_back(to, target, tag);
    }
  }
  ASSERT_TRUE(world.finish_all(operations));
  for (auto& [pe, target, seed] : expected) EXPECT_EQ(world.read(pe, target), pattern(kSmall, seed));
}

TEST_P(TagTest, CancelEndsAReceiveOnce) {
  World world = make_world(2);
  Buffer to = world.buffer(1, kind(), kSmall);
  CheckedOperation receive;
  receive.start(world.machine(1).tag_receive(1, kFullTagMask, to, &receive));
  ASSERT_TRUE(receive.was_pending());
  for (int round = 0; round < 20; ++round) world.progress();
  world.machine(1).cancel(&receive);
  ASSERT_TRUE(world.finish(receive));
  EXPECT_EQ(receive.status().code(), StatusCode::kCancelled);
  world.machine(1).cancel(&receive);
  for (int round = 0; round < 100; ++round) world.progress();

  // A message sent afterwards goes to the next receive.
  Buffer from = world.buffer(0, kind(), pattern(kSmall, 4));
  CheckedOperation send;
  CheckedOperation next;
  send.start(world.machine(0).tag_send(1, 1, from, &send));
  next.start(world.machine(1).tag_receive(1, kFullTagMask, to, &next));
  ASSERT_TRUE(world.until([&] { return send.done() && next.done(); }));
  EXPECT_EQ(world.read(1, to), pattern(kSmall, 4));
}

TEST_P(TagTest, CompletionsMayStartOperations) {
  World world = make_world(2);
  constexpr int kHops = 200;
  Buffer at[2] = {world.buffer(0, kind(), pattern(kSmall, 8)), world.buffer(1, kind(), kSmall)};
  int hops = 0;
  std::deque<CheckedOperation> operations;
  std::function<void(int)> wait_at = [&](int pe) {
    auto& receive = operations.emplace_back();
    receive.then = [&, pe] {
      if (++hops >= kHops) return;
      auto& send = operations.emplace_back();
      send.start(world.machine(pe).tag_send(1 - pe, 1, at[pe], &send));
      wait_at(pe);
    };
    receive.start(world.machine(pe).tag_receive(1, kFullTagMask, at[pe], &receive));
    if (receive.done()) receive.then();
  };
  wait_at(0);
  wait_at(1);
  auto& send = operations.emplace_back();
  send.start(world.machine(0).tag_send(1, 1, at[0], &send));
  ASSERT_TRUE(world.until([&] { return hops == kHops; }));
  EXPECT_EQ(world.read(1, at[1]), pattern(kSmall, 8));
  for (int pe : {0, 1}) world.machine(pe).close();
}

TEST_P(TagTest, NoSuchPe) {
  World world = make_world(2);
  Buffer from = world.buffer(0, kind(), kSmall);
  for (int pe : {-1, 2}) {
    CheckedOperation send;
    send.start(world.machine(0).tag_send(pe, 1, from, &send));
    EXPECT_EQ(send.status().code(), StatusCode::kOutOfRange);
  }
}

INSTANTIATE_TEST_SUITE_P(All, TagTest, every_machine_and_kind(), param_name);

class HugeTest : public ConformanceTest {};

TEST_P(HugeTest, OneGibibyteArrives) {
  World world = make_world(2);
  constexpr std::size_t kSize = std::size_t{1} << 30;
  Buffer from = world.buffer(0, kind(), kSize);
  Buffer to = world.buffer(1, kind(), kSize);
  std::vector<std::uint64_t> words(kSize / sizeof(std::uint64_t));
  std::iota(words.begin(), words.end(), std::uint64_t{1});
  const std::span contents = std::as_bytes(std::span(words));
  world.write(0, from, contents);
  CheckedOperation receive;
  CheckedOperation send;
  receive.start(world.machine(1).tag_receive(1, kFullTagMask, to, &receive));
  send.start(world.machine(0).tag_send(1, 1, from, &send));
  ASSERT_TRUE(world.until([&] { return send.done() && receive.done(); }));
  EXPECT_EQ(receive.size_bytes(), kSize);
  EXPECT_TRUE(std::ranges::equal(world.read(1, to), contents));
}

// It takes seconds, so a machine's variants do without.
std::vector<Param> machines_without_variants() {
  std::vector<Param> params = machines_and_kinds();
  std::erase_if(params, [](const Param& param) { return std::get<0>(param).find('.') != std::string::npos; });
  return params;
}

INSTANTIATE_TEST_SUITE_P(All, HugeTest, ::testing::ValuesIn(machines_without_variants()), param_name);

}  // namespace
}  // namespace weft::conformance
