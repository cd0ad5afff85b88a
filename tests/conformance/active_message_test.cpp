// Active messages: headers, payloads that are read, taken, received later or dropped.
#include <algorithm>
#include <cstring>
#include <optional>

#include "tests/conformance/world.h"

namespace weft::conformance {
namespace {

using base::StatusCode;
using machine::AmArrival;
using machine::AmPayload;
using memory::Buffer;

class ActiveMessageTest : public ConformanceTest {};

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

TEST_P(ActiveMessageTest, HeaderOnly) {
  World world = make_world(2);
  std::vector<std::vector<std::byte>> seen;
  world.on_message(1, 3, [&](AmArrival& arrival) {
    EXPECT_EQ(arrival.payload_size_bytes, 0u);
    seen.push_back(copy_of(arrival.header));
  });
  for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, machine::kMaxAmHeaderBytes}) {
    auto header = pattern(size, size);
    CheckedOperation send;
    send.start(world.machine(0).am_send(1, 3, header, {}, &send));
    std::fill(header.begin(), header.end(), std::byte{0});  // it was copied
    seen.clear();
    ASSERT_TRUE(world.until([&] { return send.done() && seen.size() == 1; })) << size;
    EXPECT_EQ(seen[0], pattern(size, size));
  }
}

// A header of the promised size, beside payloads that UCX sends eagerly and by rendezvous; the handler receives
// some payloads at once and keeps others.
TEST_P(ActiveMessageTest, TheLargestHeaderTravelsWithEachPayload) {
  World world = make_world(2);
  std::deque<CheckedOperation> receives;
  std::vector<AmPayload> kept;
  std::vector<std::byte> header;
  Buffer to{};
  bool keeps = false;
  world.on_message(1, 3, [&](AmArrival& arrival) {
    EXPECT_EQ(copy_of(arrival.header), header);
    if (keeps) {
      kept.push_back(arrival.take());
      return;
    }
    auto& receive = receives.emplace_back();
    receive.start(world.machine(1).am_receive(arrival.take(), to, &receive));
  });
  for (std::size_t size : kSizes) {
    for (const bool keep : {false, true}) {
      keeps = keep;
      Buffer from = world.buffer(0, kind(), pattern(size, size + 1));
      to = world.buffer(1, kind(), size);
      const bool any_kind = from.place.is_host() || size == 0;
      header = pattern(any_kind ? machine::kMaxAmHeaderBytes : world.machine(0).max_am_header_bytes(), 7);
      receives.clear();
      CheckedOperation send;
      send.start(world.machine(0).am_send(1, 3, header, from, &send));
      ASSERT_TRUE(world.until([&] { return !receives.empty() || !kept.empty(); })) << size;
      if (keep) {
        auto& receive = receives.emplace_back();
        receive.start(world.machine(1).am_receive(std::move(kept.back()), to, &receive));
        kept.clear();
      }
      ASSERT_TRUE(world.until([&] { return send.done() && receives[0].done(); })) << size;
      EXPECT_TRUE(send.status().ok() && receives[0].status().ok()) << receives[0].status().to_string();
      EXPECT_EQ(world.read(1, to), pattern(size, size + 1)) << size;
    }
  }
}

TEST_P(ActiveMessageTest, PayloadReceivedInTheHandler) {
  World world = make_world(2);
  std::deque<CheckedOperation> receives;
  Buffer to{};
  world.on_message(1, 3, [&](AmArrival& arrival) {
    EXPECT_EQ(copy_of(arrival.header), pattern(24, 1));
    auto& receive = receives.emplace_back();
    receive.start(world.machine(1).am_receive(arrival.take(), to, &receive));
  });
  for (std::size_t size : kSizes) {
    const auto header = pattern(24, 1);
    Buffer from = world.buffer(0, kind(), pattern(size, size));
    to = world.buffer(1, kind(), size);
    CheckedOperation send;
    send.start(world.machine(0).am_send(1, 3, header, from, &send));
    receives.clear();
    ASSERT_TRUE(world.until([&] { return send.done() && !receives.empty() && receives[0].done(); })) << size;
    EXPECT_TRUE(send.status().ok() && receives[0].status().ok()) << receives[0].status().to_string();
    EXPECT_EQ(world.read(1, to), pattern(size, size)) << size;
  }
}

TEST_P(ActiveMessageTest, PayloadTakenAndReceivedLater) {
  World world = make_world(2);
  std::vector<AmPayload> taken;
  world.on_message(1, 3, [&](AmArrival& arrival) { taken.push_back(arrival.take()); });
  std::deque<CheckedOperation> sends;
  for (std::size_t size : kSizes) {
    Buffer from = world.buffer(0, kind(), pattern(size, size));
    auto& send = sends.emplace_back();
    send.start(world.machine(0).am_send(1, 3, {}, from, &send));
  }
  ASSERT_TRUE(world.until([&] { return taken.size() == std::size(kSizes); }));
  for (int round = 0; round < 100; ++round) world.progress();
  for (AmPayload& payload : taken) {
    const std::size_t size = payload.size_bytes();
    Buffer to = world.buffer(1, kind(), size);
    if (payload.data() != nullptr) {
      EXPECT_EQ(std::memcmp(payload.data(), pattern(size, size).data(), size), 0) << size;
    }
    CheckedOperation receive;
    receive.start(world.machine(1).am_receive(std::move(payload), to, &receive));
    ASSERT_TRUE(world.finish(receive));
    EXPECT_EQ(world.read(1, to), pattern(size, size)) << size;
  }
  ASSERT_TRUE(world.finish_all(sends));
}

TEST_P(ActiveMessageTest, EagerBytesAreReadableInTheHandler) {
  World world = make_world(2);
  std::optional<std::vector<std::byte>> seen;
  world.on_message(1, 3, [&](AmArrival& arrival) {
    ASSERT_NE(arrival.data, nullptr) << "8 bytes are eager on every machine";
    seen = copy_of({arrival.data, arrival.payload_size_bytes});
  });
  Buffer from = world.buffer(0, memory::Kind::kHost, pattern(8, 2));
  CheckedOperation send;
  send.start(world.machine(0).am_send(1, 3, {}, from, &send));
  ASSERT_TRUE(world.until([&] { return send.done() && seen.has_value(); }));
  EXPECT_EQ(*seen, pattern(8, 2));
}

TEST_P(ActiveMessageTest, DroppedPayloadsEndTheSend) {
  World world = make_world(2);
  std::vector<AmPayload> taken;
  int arrived = 0;
  world.on_message(1, 3, [&](AmArrival& arrival) {
    switch (arrived++ % 3) {
      case 0:
        break;  // not taken
      case 1: {
        AmPayload dropped = arrival.take();
        break;
      }  // dropped in the handler
      case 2:
        taken.push_back(arrival.take());
        break;  // dropped later
    }
  });
  std::deque<CheckedOperation> sends;
  int started = 0;
  for (std::size_t size : kSizes) {
    for (int i = 0; i < 3; ++i) {
      Buffer from = world.buffer(0, kind(), size);
      auto& send = sends.emplace_back();
      send.start(world.machine(0).am_send(1, 3, {}, from, &send));
      ++started;
      ASSERT_TRUE(world.until([&] { return arrived == started; }));
    }
  }
  taken.clear();
  ASSERT_TRUE(world.finish_all(sends));
  for (CheckedOperation& send : sends) EXPECT_TRUE(send.status().ok()) << send.status().to_string();
}

TEST_P(ActiveMessageTest, PayloadThatDoesNotFitIsAnErrorNamingBothSizes) {
  World world = make_world(2);
  for (std::size_t size : {kSmall, kLarge}) {
    Buffer to = world.buffer(1, kind(), size - 1);
    CheckedOperation receive;
    bool arrived = false;
    world.on_message(1, 3, [&](AmArrival& arrival) {
      receive.start(world.machine(1).am_receive(arrival.take(), to, &receive));
      arrived = true;
    });
    Buffer from = world.buffer(0, kind(), size);
    CheckedOperation send;
    send.start(world.machine(0).am_send(1, 3, {}, from, &send));
    ASSERT_TRUE(world.until([&] { return arrived && send.done() && receive.done(); }));
    EXPECT_EQ(receive.status().code(), StatusCode::kTruncated);
    const std::string message(receive.status().message());
    EXPECT_NE(message.find(std::to_string(size) + " bytes"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(size - 1) + " bytes"), std::string::npos) << message;
  }
}

TEST_P(ActiveMessageTest, HandlersMaySend) {
  World world = make_world(2);
  constexpr int kHops = 300;
  int hops = 0;
  std::deque<CheckedOperation> operations;
  Buffer at[2] = {world.buffer(0, kind(), pattern(kSmall, 1)), world.buffer(1, kind(), kSmall)};
  for (int pe : {0, 1}) {
    world.on_message(pe, 5, [&, pe](AmArrival& arrival) {
      auto& receive = operations.emplace_back();
      receive.then = [&, pe] {
        if (++hops >= kHops) return;
        auto& send = operations.emplace_back();
        send.start(world.machine(pe).am_send(1 - pe, 5, {}, at[pe], &send));
      };
      receive.start(world.machine(pe).am_receive(arrival.take(), at[pe], &receive));
      if (receive.done()) receive.then();
    });
  }
  auto& send = operations.emplace_back();
  send.start(world.machine(0).am_send(1, 5, {}, at[0], &send));
  ASSERT_TRUE(world.until([&] { return hops == kHops; }));
  ASSERT_TRUE(world.finish_all(operations));
}

// A machine that called the handler inside am_send would overflow the stack.
TEST_P(ActiveMessageTest, MessagesToItselfArriveFromProgress) {
  World world = make_world(1);
  constexpr int kHops = 20'000;
  int hops = 0;
  int depth = 0;
  const auto header = pattern(32, 6);
  std::deque<CheckedOperation> operations;
  world.on_message(0, 0, [&](AmArrival& arrival) {
    ASSERT_EQ(++depth, 1);
    EXPECT_EQ(copy_of(arrival.header), header);
    if (++hops < kHops) {
      CheckedOperation& next = operations.emplace_back();
      next.start(world.machine(0).am_send(0, 0, header, {}, &next));
    }
    --depth;
  });
  CheckedOperation& first = operations.emplace_back();
  first.start(world.machine(0).am_send(0, 0, header, {}, &first));
  EXPECT_EQ(hops, 0);
  ASSERT_TRUE(world.until([&] { return hops == kHops; }));
  ASSERT_TRUE(world.finish_all(operations));

  for (std::size_t size : {kSmall, kLarge}) {
    Buffer from = world.buffer(0, kind(), pattern(size, 2));
    Buffer to = world.buffer(0, kind(), size);
    CheckedOperation receive;
    CheckedOperation self_send;
    bool arrived = false;
    world.on_message(0, 1, [&](AmArrival& arrival) {
      receive.start(world.machine(0).am_receive(arrival.take(), to, &receive));
      arrived = true;
    });
    self_send.start(world.machine(0).am_send(0, 1, {}, from, &self_send));
    EXPECT_FALSE(arrived);
    ASSERT_TRUE(world.until([&] { return arrived && self_send.done() && receive.done(); })) << size;
    EXPECT_EQ(world.read(0, to), pattern(size, 2));
  }
}

TEST_P(ActiveMessageTest, ThousandsInFlight) {
  World world = make_world(2);
  constexpr std::size_t kCount = 3000;
  std::vector<int> seen(kCount, 0);
  std::size_t total = 0;
  std::deque<CheckedOperation> receives;
  Buffer to = world.buffer(1, kind(), kCount * kSmall);
  world.on_message(1, 3, [&](AmArrival& arrival) {
    std::uint32_t index = 0;
    std::memcpy(&index, arrival.header.data(), sizeof index);
    ++seen[index];
    ++total;
    auto& receive = receives.emplace_back();
    Buffer into{static_cast<std::byte*>(to.data) + index * kSmall, kSmall, to.place, nullptr};
    receive.start(world.machine(1).am_receive(arrival.take(), into, &receive));
  });
  const auto sent = pattern(kCount * kSmall, 3);
  Buffer from = world.buffer(0, kind(), sent);
  std::deque<CheckedOperation> sends(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const auto header = std::as_bytes(std::span(&i, 1));
    const Buffer part{static_cast<std::byte*>(from.data) + i * kSmall, kSmall, from.place, nullptr};
    sends[i].start(world.machine(0).am_send(1, 3, header, part, &sends[i]));
  }
  ASSERT_TRUE(world.until([&] {
    return total == kCount && std::ranges::all_of(sends, &CheckedOperation::done) &&
           std::ranges::all_of(receives, &CheckedOperation::done);
  }));
  EXPECT_TRUE(std::ranges::all_of(seen, [](int count) { return count == 1; }));
  EXPECT_EQ(world.read(1, to), sent);
}

// Each machine says whether it has a way that completes a message at once. What it takes arrives once, in the memory of the
// call only; what it refuses does not arrive.
TEST_P(ActiveMessageTest, AMessageIsSentAtOnceOrNotAtAll) {
  World world = make_world(2);
  std::vector<std::vector<std::byte>> seen;
  world.on_message(1, 3, [&](AmArrival& arrival) {
    EXPECT_EQ(copy_of(arrival.header), pattern(40, 1));
    ASSERT_TRUE(arrival.data != nullptr || arrival.payload_size_bytes == 0);
    seen.push_back(copy_of({arrival.data, arrival.payload_size_bytes}));
  });
  constexpr std::size_t kCount = 1000;
  std::vector<std::vector<std::byte>> taken;
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<std::byte> header = pattern(40, 1);
    std::vector<std::byte> payload = pattern(i % 300, i);
    if (world.machine(0).am_send_at_once(1, 3, header, payload)) taken.push_back(payload);
    std::ranges::fill(header, std::byte{0});
    std::ranges::fill(payload, std::byte{0});
    if (i % 50 == 0) world.progress();
  }
  ASSERT_TRUE(world.until([&] { return seen.size() >= taken.size(); }));
  for (int round = 0; round < 100; ++round) world.progress();
  std::ranges::sort(seen);
  std::ranges::sort(taken);
  EXPECT_EQ(seen, taken);
  EXPECT_FALSE(world.machine(0).am_send_at_once(2, 3, {}, {}));
  EXPECT_FALSE(world.machine(0).am_send_at_once(1, machine::kMaxAmId + 1, {}, {}));
}

TEST_P(ActiveMessageTest, WrongArgumentsAreErrors) {
  World world = make_world(1);
  CheckedOperation send;
  const std::vector<std::byte> header(machine::kMaxAmHeaderBytes + 1);
  send.start(world.machine(0).am_send(0, 3, header, {}, &send));
  EXPECT_EQ(send.status().code(), StatusCode::kInvalidArgument);
  CheckedOperation far;
  far.start(world.machine(0).am_send(1, 3, {}, {}, &far));
  EXPECT_EQ(far.status().code(), StatusCode::kOutOfRange);
  CheckedOperation high;
  high.start(world.machine(0).am_send(0, machine::kMaxAmId + 1, {}, {}, &high));
  EXPECT_EQ(high.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(world.machine(0).set_am_handler(machine::kMaxAmId + 1, nullptr, nullptr).code(),
            StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(All, ActiveMessageTest, every_machine_and_kind(), param_name);

}  // namespace
}  // namespace weft::conformance
