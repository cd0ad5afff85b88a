// Entry methods that wait on channels when a collection is destroyed: each ends, with an error that names the collection.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/channel/channels.h"
#include "tests/support/device_memory.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using test_support::error_of;
using test_support::says;
using testing::TestMemory;

constexpr memory::Place kDevice{memory::Kind::kEmulated, 0};

// Of all PEs.
int alive = 0;
int ended = 0;

// The parameters: machine, PEs, memory, bytes, check mode.
using MethodCase = std::tuple<std::string, int, bool, int, bool>;

struct Ended {
  Ended() = default;
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;
  ~Ended() { ++ended; }
};

// Sends to others and receives from others; its memory is its own.
struct Party : Chare<Party> {
  Party(bool on_device, int size)
      : in(runtime().memory(), on_device ? kDevice : memory::Place(), static_cast<std::size_t>(size), 1),
        out(runtime().memory(), on_device ? kDevice : memory::Place(), static_cast<std::size_t>(size), 7) {
    ++alive;
  }
  ~Party() override { --alive; }

  // For ever, unless it ends.
  Task<> receive_from(ElementProxy<Party> peer) {
    const Ended counted;
    Channel channel(*this, peer);
    for (;;) co_await channel.recv(in.buffer());
  }
  // Sends `count` messages before.
  Task<> send_then_receive(ElementProxy<Party> peer, int count) {
    const Ended counted;
    Channel channel(*this, peer);
    for (int i = 0; i < count; ++i) channel.send(out.buffer()).detach();
    for (;;) co_await channel.recv(in.buffer());
  }
  Task<> send_for_ever(ElementProxy<Party> peer) {
    const Ended counted;
    Channel channel(*this, peer);
    for (;;) co_await channel.send(out.buffer());
  }
  // Waits for something else than the channel, and uses it afterwards. Returns what is thrown.
  Task<std::vector<std::string>> use_later(ElementProxy<Party> peer, ElementProxy<Party> other,
                                           Future<> begun, Future<> gate) {
    Channel channel(*this, peer);
    begun.set();
    co_await gate;
    std::vector<std::string> thrown;
    const auto note = [&thrown](auto use) {
      try {
        use();
        thrown.emplace_back("nothing");
      } catch (const Error& error) {
        thrown.emplace_back(error.code() == StatusCode::kClosed ? error.what() : "another error");
      }
    };
    note([&] { channel.recv(in.buffer()).detach(); });
    note([&] { channel.send(out.buffer()).detach(); });
    note([&] { Channel(*this, other); });
    co_return thrown;
  }
  // Makes its end, if it can, and returns why not.
  std::string make_end(ElementProxy<Party> peer) {
    try {
      Channel(*this, peer);
    } catch (const Error& error) {
      return error.code() == StatusCode::kClosed ? error.what() : "another error";
    }
    return "";
  }
  int touch() { return 1; }

  TestMemory in;
  TestMemory out;
};

struct ClosingMethods : ::testing::TestWithParam<MethodCase> {
  ClosingMethods() : job(std::get<1>(GetParam()), std::get<0>(GetParam())) {
    alive = ended = 0;
    if (!std::get<4>(GetParam())) return;
    for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).model<Channels>().turn_on_checks();
  }
  static bool on_device() { return std::get<2>(GetParam()); }
  static int size() { return std::get<3>(GetParam()); }
  static Array<Party> make(Runtime& runtime, int count) {
    return Array<Party>::create(runtime, Shape(count).with_map(Map::kRoundRobin), on_device(), size());
  }
  std::size_t num_ends() {
    std::size_t count = 0;
    for (int pe = 0; pe < job.num_pes(); ++pe) count += job.runtime(pe).model<Channels>().ends().size();
    return count;
  }
  // The job of `main` succeeds, `num_ended` methods have ended, and no channel end is left.
  void expect_success(std::function<Task<>(Runtime&)> main, int num_ended) {
    ASSERT_EQ(job.run([this, main = std::move(main)](Runtime& runtime) -> Task<> {
      co_await main(runtime);
      co_await runtime.quiescence();
      for (int turn = 0; turn < 10'000 && num_ends() != 0; ++turn) co_await yield_now(runtime);
    }),
              "");
    EXPECT_EQ(ended, num_ended);
    EXPECT_EQ(num_ends(), 0u);
  }

  testing::InProcessJob job;
};

TEST_P(ClosingMethods, TwoCharesOfACollectionThatReceiveFromEachOtherEnd) {
  expect_success(
      [](Runtime& runtime) -> Task<> {
        auto parties = make(runtime, 4);
        for (int i = 0; i < 3; ++i) parties[i].send<&Party::send_then_receive>(parties[i ^ 1], i % 2);
        auto awaited = parties[3].call<&Party::receive_from>(parties[2]);
        co_await runtime.quiescence();
        co_await parties.destroy();
        const std::string why = co_await error_of(awaited);
        EXPECT_TRUE(says(why, "a receive of") && says(why, "the collection") && says(why, "Party")) << why;
        EXPECT_TRUE(says(why, "has been destroyed")) << why;
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      },
      4);
}

// The server's loop ends with its collection, and its clients live on.
TEST_P(ClosingMethods, AServersLoopEndsAndThenItsClients) {
  expect_success(
      [](Runtime& runtime) -> Task<> {
        auto server = make(runtime, 1);
        auto clients = make(runtime, 3);
        for (int i = 0; i < 3; ++i) server[0].send<&Party::receive_from>(clients[i]);
        co_await clients[1].call<&Party::make_end>(server[0]);
        co_await clients[2].call<&Party::make_end>(server[0]);
        auto sends = clients[2].call<&Party::send_for_ever>(server[0]);
        for (int i = 0; i < 10; ++i) co_await yield_now(runtime);
        co_await server.destroy();
        const std::string why = co_await error_of(sends);
        EXPECT_TRUE(says(why, "at the other end has been destroyed")) << why;
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 3);
        co_await clients.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      },
      4);
}

// Nothing awaits either method, and neither collection's end comes first everywhere.
TEST_P(ClosingMethods, BothSidesMayBeDestroyedTogether) {
  expect_success(
      [](Runtime& runtime) -> Task<> {
        for (int i = 0; i < 5; ++i) {
          auto left = make(runtime, 3);
          auto right = make(runtime, 3);
          for (int k = 0; k < 3; ++k) {
            left[k].send<&Party::send_then_receive>(right[2 - k], k);
            right[k].send<&Party::receive_from>(left[2 - k]);
          }
          co_await left.call<&Party::touch>();
          co_await right.call<&Party::touch>();
          if (i > 2) co_await runtime.quiescence();
          auto first = i % 2 == 0 ? left.destroy() : right.destroy();
          auto second = i % 2 == 0 ? right.destroy() : left.destroy();
          co_await first;
          co_await second;
          co_await runtime.quiescence();
          EXPECT_EQ(alive, 0);
        }
      },
      30);
}

// The peer lives on, and never made its end: nothing but its PE can say that it never will.
TEST_P(ClosingMethods, AReceiveFromAPeerWithoutAnEndEnds) {
  expect_success(
      [](Runtime& runtime) -> Task<> {
        auto server = make(runtime, 1);
        auto clients = make(runtime, 2);
        for (int i = 0; i < 2; ++i) server[0].send<&Party::receive_from>(clients[i]);
        co_await runtime.quiescence();
        co_await server.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 2);
        EXPECT_EQ(ended, 2);
        const std::string why = co_await clients[1].call<&Party::make_end>(server[0]);
        EXPECT_TRUE(says(why, "has been destroyed")) << why;
      },
      2);
}

TEST_P(ClosingMethods, AnEndWhoseChareStillRunsThrowsAtOnce) {
  expect_success(
      [](Runtime& runtime) -> Task<> {
        auto parties = make(runtime, 1);
        auto others = make(runtime, 2);
        Future<> begun(runtime);
        Future<> gate(runtime);
        auto used = parties[0].call<&Party::use_later>(others[0], others[1], begun, gate);
        co_await begun;
        co_await others[0].call<&Party::make_end>(parties[0]);
        co_await parties.destroy();
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 3);
        gate.set();
        const std::vector<std::string> thrown = co_await used;
        EXPECT_EQ(thrown.size(), 3u);
        EXPECT_TRUE(says(thrown[0], "a receive: the collection")) << thrown[0];
        EXPECT_TRUE(says(thrown[1], "a send: the collection")) << thrown[1];
        for (const std::string& text : thrown) EXPECT_TRUE(says(text, "has been destroyed")) << text;
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 2);
        co_await others.destroy();
      },
      0);
}

// Messages under way in both directions land in memory that is still there, and nothing of them stays.
TEST_P(ClosingMethods, GenerationsOfLoopsLeaveNothing) {
  expect_success(
      [](Runtime& runtime) -> Task<> {
        for (int i = 0; i < 8; ++i) {
          auto parties = make(runtime, 4);
          for (int k = 0; k < 4; ++k) {
            parties[k].send<&Party::send_then_receive>(parties[(k + 1) % 4], k);
            parties[k].send<&Party::receive_from>(parties[(k + 3) % 4]);
          }
          for (int turn = 0; turn < 3 * i; ++turn) co_await yield_now(runtime);
          co_await parties.call<&Party::touch>();
          co_await parties.destroy();
        }
        co_await runtime.quiescence();
        EXPECT_EQ(alive, 0);
      },
      64);
}

// The job ends in the middle: everything is freed, once.
TEST_P(ClosingMethods, TheJobMayEndMeanwhile) {
  for (int turns = 0; turns < 12; ++turns) {
    alive = 0;
    {
      testing::InProcessJob short_job(job.num_pes(), std::get<0>(GetParam()));
      const std::string failure = short_job.run([turns](Runtime& runtime) -> Task<> {
        auto left = make(runtime, 3);
        auto right = make(runtime, 3);
        for (int k = 0; k < 3; ++k) {
          left[k].send<&Party::send_then_receive>(right[k], 2);
          if (k > 0) right[k].send<&Party::receive_from>(left[k]);
        }
        co_await left.call<&Party::touch>();
        co_await right.call<&Party::touch>();
        static_cast<void>(left.destroy());
        if (turns % 2 == 0) static_cast<void>(right.destroy());
        for (int turn = 0; turn < turns / 2; ++turn) co_await yield_now(runtime);
      });
      // A chare that lives on and waits fails, if it learns of the end in time.
      const bool may_fail = turns % 2 != 0 && says(failure, "at the other end has been destroyed");
      EXPECT_TRUE(failure.empty() || may_fail) << failure;
    }
    EXPECT_EQ(alive, 0) << turns;
  }
}

std::string name_of_method_case(const ::testing::TestParamInfo<MethodCase>& info) {
  const auto& [machine, num_pes, is_device, size, is_checked] = info.param;
  return machine + "_" + std::to_string(num_pes) + "_pes_" + (is_device ? "device_" : "host_") +
         std::to_string(size) + (is_checked ? "_checked" : "");
}

INSTANTIATE_TEST_SUITE_P(Host, ClosingMethods,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 3),
                                            ::testing::Values(false), ::testing::Values(100, 5000, 70'000),
                                            ::testing::Bool()),
                         name_of_method_case);
INSTANTIATE_TEST_SUITE_P(Device, ClosingMethods,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2),
                                            ::testing::Values(true), ::testing::Values(100, 50'000),
                                            ::testing::Values(false)),
                         name_of_method_case);

}  // namespace
}  // namespace weft::channel
