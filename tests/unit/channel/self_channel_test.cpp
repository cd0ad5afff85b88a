// A channel of a chare to itself: one end, which is its own peer.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/channel/channels.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::channel {
namespace {

using testing::TestMemory;

constexpr memory::Place kOwnDevice{memory::Kind::kEmulated, 0};

struct Alone : Chare<Alone> {
  ~Alone() override { ++ended; }
  Channel to_itself(std::uint32_t id = 0) { return Channel(*this, proxy()[index()], id); }

  // Messages below and above the copy limit, sent before and after their receives. Returns how many were right.
  Task<int> exchange(int count) {
    Channel channel = to_itself();
    int good = 0;
    for (int i = 0; i < count; ++i) {
      const std::vector<int> mine(static_cast<std::size_t>(i * 100), index() * 1000 + i);
      std::vector<int> theirs(mine.size());
      if (i % 2 == 0) {
        Operation received = channel.recv(theirs);
        co_await channel.send(mine);
        co_await received;
      } else {
        Operation sent = channel.send(mine);
        co_await channel.recv(theirs);
        co_await sent;
      }
      good += mine == theirs ? 1 : 0;
    }
    co_return good;
  }
  // More than the window of a channel lets a sender be ahead.
  Task<bool> many_ahead(int count) {
    Channel channel = to_itself(1);
    for (int i = 0; i < count; ++i) channel.send(std::span<const int>(&i, 1)).detach();
    bool in_order = true;
    for (int i = 0; i < count; ++i) {
      int value = -1;
      co_await channel.recv(std::span(&value, 1));
      in_order = in_order && value == i;
    }
    co_return in_order;
  }
  Task<bool> between_devices(int size) {
    const auto bytes = static_cast<std::size_t>(size);
    TestMemory out(runtime().memory(), kOwnDevice, bytes, 7);
    TestMemory in(runtime().memory(), kOwnDevice, bytes, 1);
    Channel channel = to_itself(2);
    Operation sent = channel.send(out.buffer());
    co_await channel.recv(in.buffer());
    co_await sent;
    co_return in.now() == out.filled();
  }
  Task<std::string> sizes_that_differ() {
    Channel channel = to_itself(3);
    std::vector<char> out(10);
    std::vector<char> in(20);
    channel.send(out).detach();
    try {
      co_await channel.recv(in);
    } catch (const Error& error) {
      co_return error.what();
    }
    co_return "no error";
  }
  Task<> receive_for_ever(FutureList<int> begun) {
    Channel channel = to_itself();
    begun.set(1);
    int value = 0;
    for (;;) co_await channel.recv(std::span(&value, 1));
  }
  Task<> send_large(std::vector<char> data, FutureList<int> begun) {
    Channel channel = to_itself(1);
    begun.set(2);
    co_await channel.send(data);
  }

  static inline int ended = 0;
};

// Machine, number of PEs, check mode.
class SelfChannel : public ::testing::TestWithParam<std::tuple<std::string, int, bool>> {
 protected:
  SelfChannel() : job(std::get<1>(GetParam()), std::get<0>(GetParam())) {
    if (!std::get<2>(GetParam())) return;
    for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).model<Channels>().turn_on_checks();
  }
  testing::InProcessJob job;
};

TEST_P(SelfChannel, MovesMessagesBothWaysRound) {
  std::vector<int> good;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto chares = Array<Alone>::create(runtime, {3});
    good = co_await chares.call<&Alone::exchange>(40);
  }),
            "");
  EXPECT_EQ(good, std::vector<int>(3, 40));
}

TEST_P(SelfChannel, KeepsTheOrderBeyondItsWindow) {
  // The loopback machine looks through all messages that wait.
  const int count = std::get<0>(GetParam()) == "ucx" ? 70'000 : 2000;
  std::vector<bool> in_order;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto chares = Array<Alone>::create(runtime, {2});
    in_order = co_await chares.call<&Alone::many_ahead>(count);
  }),
            "");
  EXPECT_EQ(in_order, std::vector<bool>(2, true));
}

TEST_P(SelfChannel, MovesDeviceMemory) {
  std::vector<bool> right;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto chares = Array<Alone>::create(runtime, {3});
    for (const int size : {1, 5000, 300'000}) {
      for (const bool one : co_await chares.call<&Alone::between_devices>(size)) right.push_back(one);
    }
  }),
            "");
  EXPECT_EQ(right, std::vector<bool>(9, true));
}

TEST_P(SelfChannel, RefusesSizesThatDiffer) {
  std::vector<std::string> errors;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto chares = Array<Alone>::create(runtime, {3});
    errors = co_await chares.call<&Alone::sizes_that_differ>();
  }),
            "");
  ASSERT_EQ(errors.size(), 3U);
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("10"), std::string::npos) << error;
    EXPECT_NE(error.find("20"), std::string::npos) << error;
  }
}

TEST_P(SelfChannel, EndsWithItsCollection) {
  Alone::ended = 0;
  int left = -1;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto chares = Array<Alone>::create(runtime, {3});
    FutureList<int> begun(runtime, 6);
    chares.send<&Alone::receive_for_ever>(begun);
    chares.send<&Alone::send_large>(std::vector<char>(100'000), begun);
    co_await begun;
    co_await chares.destroy();
    co_await runtime.quiescence();
    left = 0;
  }),
            "");
  EXPECT_EQ(left, 0);
  EXPECT_EQ(Alone::ended, 3);
  for (int pe = 0; pe < job.num_pes(); ++pe) EXPECT_EQ(job.runtime(pe).model<Channels>().ends().size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Machines, SelfChannel,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2),
                                            ::testing::Bool()));

}  // namespace
}  // namespace weft::channel
