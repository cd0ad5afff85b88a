// Messages whose memory is handed over to an end on the same PE.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/runtime/attachment.h"

#include "models/channel/channels.h"
#include "runtime/message/receive_buffer_pool.h"
#include "tests/support/in_process_job.h"

namespace weft::channel {
namespace {

using testing::InProcessJob;

constexpr int kSizeBytes = 50'000;

struct Giver : Chare<Giver> {
  Giver() = default;
  explicit Giver(Moved) {}
  void pup(Pup& p) { p | num_received; }

  Channel to(int peer) { return Channel(*this, proxy()[peer]); }
  // Returns whether the receiver has the memory itself.
  Task<bool> give(int peer, int value) {
    Channel channel = to(peer);
    runtime::Attachment block = runtime().receive_buffer_pool().allocate(kSizeBytes, {}).value();
    std::memset(block.buffer().data, value, kSizeBytes);
    given = block.buffer().data;
    if (channel.hand_over(block)) co_return true;
    const std::vector<char> bytes(kSizeBytes, static_cast<char>(value));
    co_await channel.send(std::span(bytes));
    co_return false;
  }
  // Returns what came, and whether it was in the sender's memory.
  Task<std::pair<int, bool>> take(int peer) {
    Channel channel = to(peer);
    ++num_received;
    const runtime::Attachment block = channel.take_handed_over();
    if (block) {
      EXPECT_EQ(block.buffer().size_bytes, kSizeBytes);
      const auto* const bytes = static_cast<const char*>(block.buffer().data);
      EXPECT_EQ(bytes[0], bytes[kSizeBytes - 1]);
      co_return std::pair(static_cast<int>(bytes[0]), block.buffer().data == given);
    }
    std::vector<char> bytes(kSizeBytes);
    co_await channel.recv(bytes);
    EXPECT_EQ(bytes.front(), bytes.back());
    co_return std::pair(static_cast<int>(bytes[0]), false);
  }
  void open(int peer) { to(peer); }
  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }

  int num_received = 0;
  static inline const void* given = nullptr;  // the tests run all PEs in one thread
};

struct HandingOver : ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Machines, HandingOver, ::testing::Values("loopback", "ucx"));

Task<Array<Giver>> connected(Runtime& runtime, int count, int peer) {
  auto givers = Array<Giver>::create(runtime, {count});
  co_await givers.created();
  givers[0].send<&Giver::open>(peer);
  givers[peer].send<&Giver::open>(0);
  co_await runtime.quiescence();
  co_return givers;
}

Task<> arrive_at(Runtime& runtime, Array<Giver> givers, int index, int pe) {
  for (;;) {
    const int at = co_await givers[index].call<&Giver::where_now>();
    if (at == pe) co_return;
    co_await yield_now(runtime);
  }
}

using Taken = std::pair<int, bool>;

TEST_P(HandingOver, TheReceiverGetsTheMemoryItself) {
  InProcessJob job(1, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = co_await connected(runtime, 2, 1);
    for (int value : {1, 2, 3}) {
      EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, value));
      EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(value, true));
    }
    for (int value : {4, 5}) EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, value));
    EXPECT_EQ((co_await givers[1].call<&Giver::take>(0)).first, 4);
    EXPECT_EQ((co_await givers[1].call<&Giver::take>(0)).first, 5);
    co_await runtime.quiescence();
  }),
            "");
}

TEST_P(HandingOver, AReceiveThatWasStartedBeforeGetsTheBytes) {
  InProcessJob job(1, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = co_await connected(runtime, 2, 1);
    auto taken = givers[1].call<&Giver::take>(0);
    co_await givers[1].call<&Giver::where_now>();  // behind it
    EXPECT_FALSE(co_await givers[0].call<&Giver::give>(1, 7));
    EXPECT_EQ(co_await taken, Taken(7, false));
    co_await runtime.quiescence();
  }),
            "");
}

// What is not received is bounded: the machine gets further bytes.
TEST_P(HandingOver, AReceiverWithManyBytesTakesNoMore) {
  InProcessJob job(1, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = co_await connected(runtime, 2, 1);
    constexpr int kMost = static_cast<int>((HandedOver::kMostBytes + kSizeBytes - 1) / kSizeBytes);
    for (int i = 0; i < kMost; ++i) EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, i % 100));
    auto waiting = givers[0].call<&Giver::give>(1, 101);
    co_await givers[0].call<&Giver::where_now>();  // behind it
    for (int i = 0; i < kMost; ++i) EXPECT_EQ((co_await givers[1].call<&Giver::take>(0)).first, i % 100);
    EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(101, false));
    EXPECT_FALSE(co_await waiting);
    EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, 102));  // there is room again
    EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(102, true));
    co_await runtime.quiescence();
  }),
            "");
}

TEST_P(HandingOver, OtherPesGetTheBytes) {
  InProcessJob job(2, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = co_await connected(runtime, 2, 1);
    auto given = givers[0].call<&Giver::give>(1, 8);
    EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(8, false));
    EXPECT_FALSE(co_await given);
  }),
            "");
}

// The receiver moves, twice, before it receives. Then the sender moves to its PE.
TEST_P(HandingOver, MessagesFollowAChareThatMoves) {
  InProcessJob job(3, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = co_await connected(runtime, 6, 1);  // both on PE 0
    for (int value : {1, 2, 3}) EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, value));
    for (int to_pe : {1, 2}) {
      givers[1].send<&Giver::go>(to_pe);
      co_await arrive_at(runtime, givers, 1, to_pe);
    }
    EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(1, false));
    givers[0].send<&Giver::go>(2);
    co_await arrive_at(runtime, givers, 0, 2);
    for (int value : {2, 3}) EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(value, false));
    EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, 4));
    EXPECT_EQ(co_await givers[1].call<&Giver::take>(0), Taken(4, true));
    co_await runtime.quiescence();
  }),
            "");
}

// Quiescence waits for the receipt. What a destroyed chare has not received is dropped.
TEST_P(HandingOver, MessagesOfCharesThatEndAreDropped) {
  InProcessJob job(1, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = co_await connected(runtime, 2, 1);
    for (int value : {1, 2, 3}) EXPECT_TRUE(co_await givers[0].call<&Giver::give>(1, value));
    const Future<> quiet = runtime.quiescence();
    for (int i = 0; i < 20; ++i) co_await yield_now(runtime);
    EXPECT_FALSE(quiet.is_ready());
    co_await givers.destroy();
    co_await quiet;
  }),
            "");
}

}  // namespace
}  // namespace weft::channel
