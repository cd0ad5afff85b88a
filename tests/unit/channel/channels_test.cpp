#include "models/channel/channels.h"

#include <gtest/gtest.h>

#include <numeric>
#include <ranges>

#include "tests/support/in_process_job.h"

namespace weft::channel {
namespace {

// Two or more of these talk to one another.
struct Talker : Chare<Talker> {
  Channel to(int other, std::uint32_t id = 0) { return Channel(*this, proxy()[other], id); }

  // Sends `count` messages of growing size and gets as many back.
  Task<int> exchange(int other, int count) {
    Channel channel = to(other);
    int good = 0;
    for (int i = 0; i < count; ++i) {
      std::vector<int> mine(static_cast<std::size_t>(i * 37), index() * 1000 + i);
      std::vector<int> theirs(mine.size());
      Operation sent = channel.send(mine);
      std::size_t bytes = co_await channel.recv(theirs);
      co_await sent;
      bool same = bytes == mine.size() * sizeof(int);
      for (int value : theirs) same &= value == other * 1000 + i;
      good += same ? 1 : 0;
    }
    co_return good;
  }

  // All receives first, then all sends, completed out of order.
  Task<bool> many_in_flight(int other, int count) {
    Channel channel = to(other);
    std::vector<double> in(static_cast<std::size_t>(count));
    std::vector<Operation> receives;
    for (double& slot : in) receives.push_back(channel.recv(std::span(&slot, 1)));
    for (int i = 0; i < count; ++i) {
      double value = i;
      channel.send(std::span(&value, 1)).detach();  // small: copied at the call
      value = -1;
    }
    for (Operation& receive : std::views::reverse(receives)) co_await receive;
    std::vector<double> expected(in.size());
    std::iota(expected.begin(), expected.end(), 0.0);
    co_return in == expected;
  }

  Task<> send_only(int other, std::vector<char> data) { co_await to(other).send(data); }
  void send_small_and_forget(int other, int count) {
    Channel channel = to(other);
    for (int i = 0; i < count; ++i) channel.send(std::span<const int>(&i, 1)).detach();
  }
  Task<int> sum_of(int other, int count) {
    int sum = 0;
    for (int i = 0; i < count; ++i) {
      int value = 0;
      co_await to(other).recv(std::span(&value, 1));
      sum += value;
    }
    co_return sum;
  }
  Task<std::string> receive_wrong(int other, std::size_t size_bytes) {
    std::vector<char> data(size_bytes);
    try {
      co_await to(other).recv(data);
    } catch (const Error& error) {
      co_return error.what();
    }
    co_return "no error";
  }
  Task<int> two_ids(int other) {
    int first = index() * 10 + 1;
    int second = index() * 10 + 2;
    to(other, 2).send(std::span(&second, 1)).detach();
    to(other, 1).send(std::span(&first, 1)).detach();
    int got_first = 0;
    int got_second = 0;
    co_await to(other, 1).recv(std::span(&got_first, 1));
    co_await to(other, 2).recv(std::span(&got_second, 1));
    co_return got_first * 100 + got_second;
  }
  Task<int> callbacks(int other) {
    int value = index() + 5;
    int got = 0;
    Future<int> result(runtime());
    to(other).send(std::span(&value, 1)).then([](const Status&, std::size_t) {});
    to(other).recv(std::span(&got, 1)).then([&got, result](const Status& status, std::size_t size_bytes) {
      result.set(status.ok() && size_bytes == sizeof got ? got : -1);
    });
    int from_callback = co_await result;
    co_return from_callback;
  }
  Task<bool> emulated(int other, std::size_t size_bytes) {
    memory::Memory& memory = runtime().memory();
    auto out = memory.allocate(size_bytes, {memory::Kind::kEmulated, 0});
    auto in = memory.allocate(size_bytes, {memory::Kind::kEmulated, 0});
    std::vector<char> host(size_bytes, static_cast<char>('a' + index()));
    co_await copy(*out, ConstBuffer(host.data(), size_bytes));
    Operation sent = to(other).send(ConstBuffer(*out));
    co_await to(other).recv(*in);
    co_await sent;
    std::vector<char> back(size_bytes);
    co_await copy(Buffer{back.data(), size_bytes, {}, nullptr}, *in);
    base::check(memory.deallocate(*out));
    base::check(memory.deallocate(*in));
    co_return back == std::vector<char>(size_bytes, static_cast<char>('a' + other));
  }
  Operation copy(const Buffer& destination, const ConstBuffer& source) {
    auto* state = runtime::OperationState::create(runtime());
    state->started(runtime().memory().copy(destination, source, state->completion()), source.size_bytes);
    return Operation(state);
  }
};

// Both ends on one PE, on two, over the reference machine and over UCX.
struct ChannelTest : ::testing::TestWithParam<std::tuple<std::string, int>> {
  ChannelTest() : job(std::get<1>(GetParam()), std::get<0>(GetParam())) {}

  void run(std::function<Task<>(Runtime&, const Array<Talker>&)> body) {
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto talkers = Array<Talker>::create(runtime, Shape(2).with_map(Map::kRoundRobin));
      co_await body(runtime, talkers);
    }),
              "");
  }
  testing::InProcessJob job;
};

TEST_P(ChannelTest, OrderedExchangeOfManySizes) {
  run([](Runtime&, const Array<Talker>& talkers) -> Task<> {
    Future<int> first = talkers[0].call<&Talker::exchange>(1, 60);
    Future<int> second = talkers[1].call<&Talker::exchange>(0, 60);
    EXPECT_EQ(co_await first, 60);
    EXPECT_EQ(co_await second, 60);
  });
}

TEST_P(ChannelTest, ManyInFlight) {
  run([](Runtime&, const Array<Talker>& talkers) -> Task<> {
    Future<bool> first = talkers[0].call<&Talker::many_in_flight>(1, 2000);
    Future<bool> second = talkers[1].call<&Talker::many_in_flight>(0, 2000);
    EXPECT_TRUE(co_await first);
    EXPECT_TRUE(co_await second);
  });
}

TEST_P(ChannelTest, EitherSideMayComeFirst) {
  run([](Runtime& runtime, const Array<Talker>& talkers) -> Task<> {
    talkers[0].send<&Talker::send_small_and_forget>(1, 10);
    co_await runtime.sleep(0.001);
    EXPECT_EQ((co_await talkers[1].call<&Talker::sum_of>(0, 10)), 45);
    Future<int> waiting = talkers[0].call<&Talker::sum_of>(1, 5);
    co_await runtime.sleep(0.001);
    talkers[1].send<&Talker::send_small_and_forget>(0, 5);
    EXPECT_EQ(co_await waiting, 10);
  });
}

TEST_P(ChannelTest, IdsKeepChannelsApart) {
  run([](Runtime&, const Array<Talker>& talkers) -> Task<> {
    Future<int> first = talkers[0].call<&Talker::two_ids>(1);
    Future<int> second = talkers[1].call<&Talker::two_ids>(0);
    EXPECT_EQ(co_await first, 1112);
    EXPECT_EQ(co_await second, 102);
  });
}

TEST_P(ChannelTest, CallbacksGetTheOutcome) {
  run([](Runtime&, const Array<Talker>& talkers) -> Task<> {
    Future<int> first = talkers[0].call<&Talker::callbacks>(1);
    Future<int> second = talkers[1].call<&Talker::callbacks>(0);
    EXPECT_EQ(co_await first, 6);
    EXPECT_EQ(co_await second, 5);
  });
}

TEST_P(ChannelTest, CountersWrap) {
  for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).model<Channels>().set_first_counter(0xfffffff0u);
  run([](Runtime&, const Array<Talker>& talkers) -> Task<> {
    Future<bool> first = talkers[0].call<&Talker::many_in_flight>(1, 100);
    Future<bool> second = talkers[1].call<&Talker::many_in_flight>(0, 100);
    EXPECT_TRUE(co_await first);
    EXPECT_TRUE(co_await second);
  });
}

TEST_P(ChannelTest, DeviceBuffers) {
  run([](Runtime&, const Array<Talker>& talkers) -> Task<> {
    for (std::size_t size : {std::size_t{1}, std::size_t{4096}, std::size_t{300000}}) {
      Future<bool> first = talkers[0].call<&Talker::emulated>(1, size);
      Future<bool> second = talkers[1].call<&Talker::emulated>(0, size);
      EXPECT_TRUE(co_await first) << size;
      EXPECT_TRUE(co_await second) << size;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Machines, ChannelTest,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param)) +
                                  "_pe";
                         });

// Each pair of sizes in a job of its own: an error leaves the pair's counters apart.
struct SizeMismatch : ::testing::TestWithParam<std::tuple<std::string, std::pair<int, int>>> {};

TEST_P(SizeMismatch, NamesBothSizesAndTheChannel) {
  auto [machine, sizes] = GetParam();
  auto [sent, expected] = sizes;
  testing::InProcessJob job(2, machine);
  std::string message;
  EXPECT_EQ(job.run([&, sent = sent, expected = expected](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, Shape(2));
    Future<> sending =
        talkers[0].call<&Talker::send_only>(1, std::vector<char>(static_cast<std::size_t>(sent)));
    message = co_await talkers[1].call<&Talker::receive_wrong>(0, static_cast<std::size_t>(expected));
  }),
            "");
  EXPECT_NE(message.find(std::to_string(sent)), std::string::npos) << message;
  EXPECT_NE(message.find(std::to_string(expected)), std::string::npos) << message;
  EXPECT_NE(message.find("Talker[1]"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, SizeMismatch,
    ::testing::Combine(::testing::Values("loopback", "ucx"),
                       ::testing::Values(std::pair{8, 4}, std::pair{4, 8}, std::pair{0, 1}, std::pair{1, 0},
                                         std::pair{100000, 50000}, std::pair{50000, 100000})));

// Both constructors make both channels and send, when no collection knows the chares yet.
struct EarlyTalker : Chare<EarlyTalker> {
  EarlyTalker() {
    const int first = index();
    const int second = index() + 10;
    to_the_other().out_of_band().send(std::span(&second, 1)).detach();
    to_the_other().send(std::span(&first, 1)).detach();
  }
  Channel to_the_other() { return Channel(*this, proxy()[1 - index()]); }
  Task<int> receive() {
    int first = 0;
    int second = 0;
    co_await to_the_other().recv(std::span(&first, 1));
    co_await to_the_other().out_of_band().recv(std::span(&second, 1));
    co_return first * 100 + second;
  }
};

TEST(Channel, AConstructorMayMakeTheChannelBesideAnother) {
  testing::InProcessJob job(2);
  std::vector<int> received;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto talkers = Array<EarlyTalker>::create(runtime, {2});
    received = co_await talkers.call<&EarlyTalker::receive>();
  }),
            "");
  EXPECT_EQ(received, (std::vector<int>{111, 10}));
}

TEST(ChannelErrors, OperationsInFlightEndWithTheJob) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, {3});
    talkers[0].send<&Talker::sum_of>(2, 1);                                // a receive that nobody serves
    talkers[1].send<&Talker::send_only>(0, std::vector<char>(1'000'000));  // a send that nobody receives
    co_await runtime.sleep(0.001);
  }),
            "");
}

}  // namespace
}  // namespace weft::channel
