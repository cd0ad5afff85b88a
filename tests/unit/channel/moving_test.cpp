// Channels of elements that move.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/channel/walker.h"

namespace weft::channel {
namespace {

using testing::InProcessJob;

struct MovingChannels : ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Machines, MovingChannels, ::testing::Values("loopback", "ucx"));

// Each size and kind of memory, sent before the move and after it, received before it and after it.
TEST_P(MovingChannels, MessagesThatWereNotReceivedTravel) {
  InProcessJob job(3, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {3});
    co_await walkers.created();
    walkers[0].send<&Walker::send>(1, 0, 40);
    EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 7), "");
    for (int to_pe : {2, 0, 1, 0}) {
      walkers[1].send<&Walker::go>(to_pe);
      co_await arrive(runtime, walkers, 1, to_pe);
      EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 5), "");
      walkers[0].send<&Walker::send>(1, 0, 3);
    }
    EXPECT_EQ(co_await walkers[1].call<&Walker::moves>(), 4);
    EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 25), "");
    walkers[1].send<&Walker::send>(0, 0, 30);
    EXPECT_EQ(co_await walkers[0].call<&Walker::receive>(1, 0, 30), "");
    co_await runtime.quiescence();
  }),
            "");
}

TEST_P(MovingChannels, BothEndsMoveAtOnce) {
  InProcessJob job(3, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    for (int id : {0, 1}) {
      for (int i : {0, 1}) walkers[i].send<&Walker::open>(1 - i, id);
    }
    for (int i : {0, 1}) walkers[i].send<&Walker::use_sizes>(3);
    int round = 0;
    for (const auto& [first, second] :
         std::vector<std::pair<int, int>>{{1, 0}, {2, 2}, {0, 0}, {1, 2}, {2, 1}, {1, 1}, {0, 1}}) {
      for (int i : {0, 1}) walkers[i].send<&Walker::send>(1 - i, round % 2, 5);
      walkers[0].send<&Walker::go>(first);
      walkers[1].send<&Walker::go>(second);
      co_await arrive(runtime, walkers, 0, first);
      co_await arrive(runtime, walkers, 1, second);
      for (int i : {0, 1}) {
        EXPECT_EQ(co_await walkers[i].call<&Walker::receive>(1 - i, round % 2, 5), "") << round;
      }
      for (int i : {0, 1}) walkers[i].send<&Walker::send>(1 - i, 0, 8);
      for (int i : {0, 1}) EXPECT_EQ(co_await walkers[i].call<&Walker::receive>(1 - i, 0, 8), "");
      ++round;
    }
    co_await runtime.quiescence();
  }),
            "");
}

TEST_P(MovingChannels, AnElementsChannelToItselfMoves) {
  InProcessJob job(2, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    walkers[0].send<&Walker::use_sizes>(3);
    walkers[0].send<&Walker::open>(0, 1);  // connects while the element moves
    for (int to_pe : {1, 0, 1}) {
      walkers[0].send<&Walker::go>(to_pe);
      co_await arrive(runtime, walkers, 0, to_pe);
      for (int id : {0, 1}) co_await walkers[0].call<&Walker::send>(0, id, 2);
    }
    for (int id : {0, 1}) EXPECT_EQ(co_await walkers[0].call<&Walker::receive>(0, id, 6), "");
    co_await runtime.quiescence();
  }),
            "");
}

// The other end is made before the move, meanwhile or later.
TEST_P(MovingChannels, AnEndThatIsNotConnectedMoves) {
  for (int turns = 0; turns < 30; ++turns) {
    InProcessJob job(3, GetParam());
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto walkers = Array<Walker>::create(runtime, {3});
      co_await walkers.created();
      const bool both = turns % 3 == 0;
      walkers[1].send<&Walker::open>(0, 0);
      walkers[1].send<&Walker::go>(2);
      if (both) walkers[0].send<&Walker::go>(1);
      for (int i = 0; i < turns / 2; ++i) co_await yield_now(runtime);
      walkers[0].send<&Walker::send>(1, 0, 9);
      co_await arrive(runtime, walkers, 1, 2);
      if (turns % 2 == 0) {
        walkers[1].send<&Walker::go>(0);
        co_await arrive(runtime, walkers, 1, 0);
      }
      walkers[1].send<&Walker::send>(0, 0, 9);
      EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 9), "");
      EXPECT_EQ(co_await walkers[0].call<&Walker::receive>(1, 0, 9), "");
      if (both) co_await arrive(runtime, walkers, 0, 1);
      co_await runtime.quiescence();
    }),
              "")
        << turns;
  }
}

TEST_P(MovingChannels, AMoveWaitsForReceivesOfTheProgram) {
  InProcessJob job(2, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    co_await walkers[0].call<&Walker::begin_receive>(1, 0);
    co_await walkers[0].call<&Walker::go>(1);
    for (int i = 0; i < 100; ++i) co_await yield_now(runtime);
    EXPECT_EQ(co_await walkers[0].call<&Walker::where_now>(), 0);
    walkers[1].send<&Walker::send>(0, 0, 1);
    co_await arrive(runtime, walkers, 0, 1);
    co_await runtime.quiescence();
  }),
            "");
}

// A peer that is stopped must go on when a method needs its messages, or both would wait for ever.
TEST_P(MovingChannels, AMethodThatBeginsMeanwhileGetsItsMessages) {
  InProcessJob job(2, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    for (int round = 0; round < 40; ++round) {
      const int to_pe = 1 - round % 2;
      walkers[0].send<&Walker::go>(to_pe);
      if (round % 3 != 0) {
        for (int i = 0; i < round % 7; ++i) co_await yield_now(runtime);
      }
      auto receiving = walkers[0].call<&Walker::receive>(1, 0, 6);
      auto sending = walkers[1].call<&Walker::send>(0, 0, 6);
      EXPECT_EQ(co_await receiving, "");
      co_await sending;
      co_await arrive(runtime, walkers, 0, to_pe);
    }
    co_await runtime.quiescence();
  }),
            "");
}

TEST_P(MovingChannels, AHandleInTheStateIsTheEndOnTheNewPe) {
  InProcessJob job(2, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    co_await walkers[0].call<&Walker::keep>(1, 4);
    walkers[0].send<&Walker::go>(1);
    co_await arrive(runtime, walkers, 0, 1);
    const std::string name = co_await walkers[0].call<&Walker::kept_name>();
    EXPECT_NE(name.find("Walker[0] - "), std::string::npos) << name;
    EXPECT_NE(name.find("id 4, on PE 1"), std::string::npos) << name;
  }),
            "");
}

// More than the window of a channel lets a sender be ahead.
TEST_P(MovingChannels, WindowsMove) {
  InProcessJob job(2, GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    for (int i : {0, 1}) walkers[i].send<&Walker::use_sizes>(3);
    for (int round = 0; round < 2; ++round) {
      walkers[0].send<&Walker::send>(1, 0, 20'000);
      EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 15'000), "");
      walkers[1].send<&Walker::go>(round % 2);
      walkers[0].send<&Walker::go>(1 - round / 2 % 2);
      co_await arrive(runtime, walkers, 1, round % 2);
      EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 5'000), "");
    }
    co_await runtime.quiescence();
  }),
            "");
}

TEST(MovingChannelsChecked, MoveWhenAllMessagesWereReceived) {
  InProcessJob job(2);
  for (int pe : {0, 1}) job.runtime(pe).model<Channels>().turn_on_checks();
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto walkers = Array<Walker>::create(runtime, {2});
    co_await walkers.created();
    for (int i : {0, 1}) {
      walkers[i].send<&Walker::use_sizes>(3);
      walkers[i].send<&Walker::open>(1 - i, 0);
    }
    co_await runtime.quiescence();
    for (int round = 0; round < 4; ++round) {
      co_await walkers[1].call<&Walker::send>(0, 0, 3);
      co_await walkers[0].call<&Walker::go>(1 - round % 2);
      for (int i = 0; i < 50; ++i) co_await yield_now(runtime);
      EXPECT_EQ(co_await walkers[0].call<&Walker::where_now>(), round % 2);
      EXPECT_EQ(co_await walkers[0].call<&Walker::receive>(1, 0, 3), "");
      co_await arrive(runtime, walkers, 0, 1 - round % 2);
      co_await walkers[0].call<&Walker::send>(1, 0, 2);
      EXPECT_EQ(co_await walkers[1].call<&Walker::receive>(0, 0, 2), "");
    }
    co_await runtime.quiescence();
  }),
            "");
}

// Two collections: what is left of a channel when one of them is destroyed while its elements move.
struct Pair : Chare<Pair> {
  Pair() = default;
  explicit Pair(Moved) {}
  void pup(Pup&) {}
  void go(int to_pe) { migrate(to_pe); }
  void open(chare::ElementProxy<Pair> other) { Channel(*this, other); }
  void send(chare::ElementProxy<Pair> other) {
    int value = 7;
    Channel(*this, other).send(std::span<const int>(&value, 1)).detach();
  }
  Task<std::string> receive(chare::ElementProxy<Pair> other) {
    int value = 0;
    try {
      for (;;) co_await Channel(*this, other).recv(std::span(&value, 1));
    } catch (const Error& error) {
      co_return error.what();
    }
  }
  int where_now() { return pe(); }
};

TEST_P(MovingChannels, APeerHearsOfTheEndOfElementsThatMove) {
  for (int turns = 0; turns < 24; ++turns) {
    InProcessJob job(3, GetParam());
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto ones = Array<Pair>::create(runtime, {3});
      auto others = Array<Pair>::create(runtime, {3});
      co_await ones.created();
      co_await others.created();
      for (int i = 0; i < 3; ++i) {
        ones[i].send<&Pair::open>(others[i]);
        if (turns % 2 == 0) others[i].send<&Pair::send>(ones[i]);
      }
      for (int i = 0; i < 3; ++i) {
        ones[i].send<&Pair::go>((i + 1) % 3);
        if (turns % 3 == 0) others[i].send<&Pair::go>((i + 2) % 3);
      }
      for (int i = 0; i < turns / 2; ++i) co_await yield_now(runtime);
      co_await ones.destroy();
      for (int i = 0; i < 3; ++i) {
        const std::string error = co_await others[i].call<&Pair::receive>(ones[i]);
        EXPECT_NE(error.find("has been destroyed"), std::string::npos) << error;
      }
      co_await runtime.quiescence();
      // The receive that has failed was counted, and no message belongs to it.
      for (int i = 0; i < 3; ++i) {
        const int to_pe = (co_await others[i].call<&Pair::where_now>() + 1) % 3;
        co_await others[i].call<&Pair::go>(to_pe);
        co_await runtime.quiescence();
        EXPECT_EQ(co_await others[i].call<&Pair::where_now>(), to_pe);
      }
    }),
              "")
        << turns;
  }
}

// An end that is made between the request to the peers and their answers is asked too.
TEST_P(MovingChannels, AnEndThatIsMadeDuringTheMoveTravels) {
  for (int turns = 0; turns < 12; ++turns) {
    InProcessJob job(2, GetParam());
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto walkers = Array<Walker>::create(runtime, {2});
      for (int i = 0; i < 2; ++i) co_await walkers[i].call<&Walker::open>(1 - i, 0);
      co_await runtime.quiescence();
      co_await walkers[0].call<&Walker::go>(1);
      for (int i = 0; i < turns; ++i) co_await yield_now(runtime);
      walkers[0].send<&Walker::open>(1, 1);
      co_await runtime.quiescence();
      EXPECT_EQ(co_await walkers[0].call<&Walker::where_now>(), 1);
      for (const int id : {0, 1}) {
        walkers[1].send<&Walker::send>(0, id, 2);
        EXPECT_EQ(co_await walkers[0].call<&Walker::receive>(1, id, 2), "");
      }
    }),
              "")
        << turns;
  }
}

// The message comes after the step, so the element neither moves nor keeps the others waiting.
TEST_P(MovingChannels, AReceiveThatIsUnderWayDoesNotDelayASyncPoint) {
  for (const bool is_asked_before : {false, true}) {
    InProcessJob job(2, GetParam());
    EXPECT_EQ(job.run([is_asked_before](Runtime& runtime) -> Task<> {
      auto walkers = Array<Walker>::create(runtime, {2});
      co_await walkers[0].call<&Walker::begin_receive>(1, 0);
      co_await walkers[0].call<&Walker::go>(1);
      if (is_asked_before) co_await runtime.quiescence();
      Future<int> over(runtime);
      for (int i = 0; i < 2; ++i) walkers[i].send<&Walker::sync>(over);
      EXPECT_EQ(co_await over, 2);
      EXPECT_EQ(co_await walkers[0].call<&Walker::where_now>(), 0);
      co_await walkers[1].call<&Walker::send>(0, 0, 1);
      co_await runtime.quiescence();
    }),
              "")
        << is_asked_before;
  }
}

TEST_P(MovingChannels, LoadBalancingMovesElementsWithChannels) {
  InProcessJob job(3, GetParam());
  for (int pe = 0; pe < 3; ++pe) {
    for (const runtime::ModelOption& option : job.runtime(pe).model<chare::Chares>().options()) {
      if (option.variable == "WEFT_LB") {
        EXPECT_TRUE(option.set("rotate"));
      }
    }
  }
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    constexpr int kWalkers = 12;
    auto walkers = Array<Walker>::create(runtime, {kWalkers});
    co_await walkers.created();
    const std::vector<int> before = co_await walkers.call<&Walker::where_now>();
    for (int step = 1; step <= 4; ++step) {
      for (int i = 0; i < kWalkers; ++i) {
        for (int side : {1, kWalkers - 1}) walkers[i].send<&Walker::send>((i + side) % kWalkers, 0, 4);
      }
      for (int i = 0; i < kWalkers; ++i) {
        for (int side : {1, kWalkers - 1}) {
          EXPECT_EQ(co_await walkers[i].call<&Walker::receive>((i + side) % kWalkers, 0, 4), "");
        }
      }
      co_await runtime.quiescence();
      // In the last step messages are under way.
      const int unread = step == 4 ? 3 : 0;
      for (int i = 0; i < kWalkers && unread != 0; ++i) co_await walkers[i].call<&Walker::use_sizes>(3);
      for (int i = 0; i < kWalkers; ++i) walkers[i].send<&Walker::send>((i + 1) % kWalkers, 0, unread);
      Future<int> over(runtime);
      for (int i = 0; i < kWalkers; ++i) walkers[i].send<&Walker::sync>(over);
      EXPECT_EQ(co_await over, kWalkers);
      for (int i = 0; i < kWalkers; ++i) {
        EXPECT_EQ(co_await walkers[(i + 1) % kWalkers].call<&Walker::receive>(i, 0, unread), "");
      }
      const std::vector<int> after = co_await walkers.call<&Walker::where_now>();
      for (int i = 0; i < kWalkers; ++i) EXPECT_EQ(after[i], (before[i] + step) % 3) << i;
    }
  }),
            "");
}

// Random messages and moves. Each message that is sent is received, at another time.
Task<> random_traffic(Runtime& runtime, std::uint32_t seed, int num_walkers, int num_pes, int num_actions) {
  std::mt19937 random(seed);
  const auto below = [&random](int limit) {
    return static_cast<int>(random() % static_cast<std::uint32_t>(limit));
  };
  auto walkers = Array<Walker>::create(runtime, {num_walkers});
  co_await walkers.created();
  struct Owed {
    int from, to, id, count;
  };
  std::vector<Owed> owed;
  std::vector<Future<std::string>> receiving;
  for (int i = 0; i < num_actions; ++i) {
    const int action = below(10);
    if (action < 3) {
      const int from = below(num_walkers);
      // Right, left, and across.
      const int to =
          (from + std::vector<int>{1, num_walkers - 1, num_walkers / 2}[static_cast<std::size_t>(below(3))]) %
          num_walkers;
      const Owed one{from, to, below(2), 1 + below(6)};
      walkers[from].send<&Walker::send>(to, one.id, one.count);
      owed.push_back(one);
    } else if (action < 6 && !owed.empty()) {
      const Owed one = owed.front();
      owed.erase(owed.begin());
      receiving.push_back(walkers[one.to].call<&Walker::receive>(one.from, one.id, one.count));
    } else if (action < 9) {
      static_cast<void>(co_await walkers[below(num_walkers)].call<&Walker::try_to_go>(below(num_pes)));
    } else {
      for (int turn = below(20); turn > 0; --turn) co_await yield_now(runtime);
    }
  }
  for (const Owed& one : owed) {
    receiving.push_back(walkers[one.to].call<&Walker::receive>(one.from, one.id, one.count));
  }
  for (auto& one : receiving) EXPECT_EQ(co_await one, "") << "seed " << seed;
  co_await runtime.quiescence();
  int moves = 0;
  for (int count : co_await walkers.call<&Walker::moves>()) moves += count;
  EXPECT_GT(moves, 0) << "seed " << seed;
}

TEST_P(MovingChannels, NoMessageIsLostDoubledOrOutOfOrder) {
  const bool is_loopback = GetParam() == "loopback";
  for (std::uint32_t seed = 1; seed <= (is_loopback ? 12U : 6U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int num_pes = 2 + static_cast<int>(seed % 3);
    InProcessJob job(num_pes, GetParam());
    // Numbers wrap in the middle.
    for (int pe = 0; pe < num_pes; ++pe) job.runtime(pe).model<Channels>().set_first_counter(0xfffffff0);
    EXPECT_EQ(job.run([seed, num_pes](Runtime& runtime) -> Task<> {
      co_await random_traffic(runtime, seed, 3 + static_cast<int>(seed % 4), num_pes, 200);
    }),
              "");
  }
}

}  // namespace
}  // namespace weft::channel
