#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/chare/collection.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;
int alive = 0;

struct Rover : Chare<Rover> {
  explicit Rover(int cargo_size) : cargo(static_cast<std::size_t>(cargo_size)) {
    ++alive;
    for (std::size_t i = 0; i < cargo.size(); ++i) cargo[i] = mark(i);
  }
  explicit Rover(Moved) { ++alive; }
  ~Rover() override { --alive; }
  void pup(Pup& p) { p | cargo | heard | shouts | arrivals; }
  void migrated() override { ++arrivals; }

  std::uint64_t mark(std::size_t i) const { return linear_index() * 1000003 + i; }
  bool cargo_is_whole() const {
    for (std::size_t i = 0; i < cargo.size(); ++i) {
      if (cargo[i] != mark(i)) return false;
    }
    return true;
  }

  void go(int to_pe) { migrate(to_pe); }
  int where_now() { return pe(); }
  int moves() { return static_cast<int>(num_moves()); }
  int arrived() { return arrivals; }
  void hear(int source, int number) { ++heard[{source, number}]; }
  void hear_all(int source, int number) { ++shouts[{source, number}]; }
  void give(int value, Future<int> sum) { contribute(value, Reducer::kSum, target_of(sum)); }
  void give_to_all(int value) { contribute(value, Reducer::kSum, proxy().target<&Rover::result>()); }
  void result(int value) { ++shouts[{-1, value}]; }
  std::string log() {
    std::string text = cargo_is_whole() ? "" : "damaged cargo;";
    for (const auto& [id, count] : heard) {
      if (count != 1) text += "heard " + std::to_string(count) + " times;";
    }
    for (const auto& [id, count] : shouts) {
      if (count != 1)
        text += "shout " + std::to_string(id.first) + "." + std::to_string(id.second) + " " +
                std::to_string(count) + " times;";
    }
    return text + std::to_string(heard.size()) + "," + std::to_string(shouts.size());
  }
  std::vector<int> heard_from(int source) {
    std::vector<int> numbers;
    for (const auto& [id, count] : heard) {
      if (id.first == source) numbers.push_back(id.second);
    }
    return numbers;
  }
  // Ends when `gate` is set.
  Task<int> wait(Future<int> gate, Future<> begun) {
    begun.set();
    co_return co_await gate;
  }
  Task<int> take_part(int value) { co_return co_await allreduce(value, Reducer::kSum); }

  std::vector<std::uint64_t> cargo;
  std::map<std::pair<int, int>, int> heard;
  std::map<std::pair<int, int>, int> shouts;
  int arrivals = 0;
};

struct Stone : Chare<Stone> {
  void go(int to_pe) { migrate(to_pe); }
  void touch() {}
};

TEST(Migration, MovesTheStateAndTheElementIsFoundFromEveryPe) {
  for (const char* machine : {"loopback", "ucx"}) {
    alive = 0;
    testing::InProcessJob job(3, machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      auto rovers = Array<Rover>::create(runtime, {6}, 200'000);
      co_await rovers.created();
      EXPECT_EQ(alive, 6);
      for (int to_pe : {1, 2, 0, 0, 2}) {
        co_await rovers[0].call<&Rover::go>(to_pe);
        EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), to_pe);
      }
      EXPECT_EQ(co_await rovers[0].call<&Rover::moves>(), 4);
      EXPECT_EQ(co_await rovers[0].call<&Rover::arrived>(), 4);
      EXPECT_EQ((co_await rovers.call<&Rover::log>())[0], "0,0");
      EXPECT_EQ(alive, 6);
      co_await rovers.destroy();
      EXPECT_EQ(alive, 0);
    }),
              "");
  }
}

TEST(Migration, RefusesWhatCannotMoveWithTheReason) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto rovers = Array<Rover>::create(runtime, {2}, 1);
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(2)), "there is no PE 2; the job has 2"));
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(-1)), "there is no PE -1"));
    auto stones = Array<Stone>::create(runtime, {2});
    EXPECT_TRUE(says(co_await error_of(stones[0].call<&Stone::go>(1)), "void pup(weft::Pup& p)"));

    Future<int> gate(runtime);
    Future<> begun(runtime);
    auto waiting = rovers[0].call<&Rover::wait>(gate, begun);
    co_await begun;
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(1)), "has 1 coroutine that waits"));
    gate.set(7);
    EXPECT_EQ(co_await waiting, 7);
    rovers.local(0)->set_pinned(true);
    EXPECT_TRUE(says(co_await error_of(rovers[0].call<&Rover::go>(1)), "is pinned"));
    rovers.local(0)->set_pinned(false);
    rovers.local(0)->migrate(1);
    rovers.local(0)->set_pinned(true);  // it stays
    co_await yield_now(runtime);
    EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), 0);
    auto group = Group<Rover>::create(runtime, 1);
    EXPECT_TRUE(says(co_await error_of(group[0].call<&Rover::go>(1)), "belongs to a group"));
    rovers.local(0)->set_pinned(false);
    co_await rovers[0].call<&Rover::go>(1);
    EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), 1);
  }),
            "");
}

// A method that is called between the request and the move, and waits, delays the move.
TEST(Migration, WaitsForMethodsThatHaveBegunMeanwhile) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto rovers = Array<Rover>::create(runtime, {2}, 1);
    co_await rovers.created();
    Future<int> gate(runtime);
    Future<> begun(runtime);
    rovers[0].send<&Rover::go>(1);
    auto waiting = rovers[0].call<&Rover::wait>(gate, begun);
    co_await begun;
    EXPECT_EQ(co_await rovers[0].call<&Rover::where_now>(), 0);
    gate.set(3);
    EXPECT_EQ(co_await waiting, 3);
    while (co_await rovers[0].call<&Rover::where_now>() != 1) co_await yield_now(runtime);
    EXPECT_EQ(co_await rovers[0].call<&Rover::moves>(), 1);
  }),
            "");
}

TEST(Migration, DoesNothingForAnElementOfADestroyedCollection) {
  alive = 0;
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    for (int round = 0; round < 20; ++round) {
      auto rovers = Array<Rover>::create(runtime, {6}, 1);
      co_await rovers.created();
      for (int i = 0; i < 6; ++i) rovers[i].send<&Rover::go>((i + round) % 3);
      for (int turn = 0; turn < round; ++turn) co_await yield_now(runtime);
      co_await rovers.destroy();
    }
    co_await runtime.quiescence();
    EXPECT_EQ(alive, 0);
  }),
            "");
}

// Vectors of all sizes and of several types; a list, which pup() visits as a vector of its own; a constant.
struct Hauler : Chare<Hauler> {
  struct Point {
    float x, y, z;
  };
  explicit Hauler(int scale)
      : doubles(static_cast<std::size_t>(20'000 * scale)),
        points(static_cast<std::size_t>(5'000 * scale)),
        many(150, std::vector<std::int32_t>(static_cast<std::size_t>(9'000 * scale))),
        fixed(static_cast<std::size_t>(30'000 * scale)) {
    for (int i = 0; i < 12'000 * scale; ++i) list.push_back(i);
    for (std::size_t i = 0; i < doubles.size(); ++i) doubles[i] = static_cast<double>(i);
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = {static_cast<float>(i), 1, 2};
    for (std::size_t i = 0; i < many.size(); ++i) std::ranges::fill(many[i], static_cast<std::int32_t>(i));
    std::ranges::fill(fixed, 7);
  }
  explicit Hauler(Moved) {}
  void pup(Pup& p) {
    std::vector<std::int64_t> visited(list.begin(), list.end());
    p | visited;
    if (p.is_unpacking()) list.assign(visited.begin(), visited.end());
    p | doubles | sum | points | many | empty;
    if (p.is_unpacking()) {
      p | fixed;
    } else {
      p | std::as_const(fixed);  // still whole behind it
      EXPECT_TRUE(std::ranges::all_of(fixed, [](std::uint16_t one) { return one == 7; }));
    }
    if (p.is_unpacking()) sum = std::accumulate(doubles.begin(), doubles.end(), 0.0);  // it is here by now
  }
  void go(int to_pe) { migrate(to_pe); }
  std::string check(int scale) {
    const NewChare place(collection(), linear_index());
    const Hauler expected(scale);
    if (doubles != expected.doubles || many != expected.many || fixed != expected.fixed) return "damaged";
    if (list != expected.list || !empty.empty()) return "damaged list";
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].x != static_cast<float>(i) || points[i].z != 2) return "damaged points";
    }
    const auto n = static_cast<double>(doubles.size());
    return num_moves() == 0 || sum == n * (n - 1) / 2 ? "" : "wrong sum";
  }

  std::vector<double> doubles;
  std::vector<Point> points;
  std::vector<std::vector<std::int32_t>> many;
  std::list<std::int64_t> list;
  std::vector<std::uint16_t> fixed;
  std::vector<double> empty;
  double sum = 0;
};

// Packs a constant and a temporary, whose storage it cannot give away, and a member.
struct Frugal : Chare<Frugal> {
  explicit Frugal(int size) : kept(static_cast<std::size_t>(size), 1.5), given(kept.size(), 2.5) {}
  explicit Frugal(Moved) {}
  void pup(Pup& p) {
    if (p.is_unpacking()) {
      std::vector<double> doubled;
      p | kept | doubled | given;
      sum = std::accumulate(doubled.begin(), doubled.end(), 0.0);
    } else {
      p | std::as_const(kept) | twice(kept) | given;
    }
  }
  static std::vector<double> twice(std::vector<double> values) {
    for (double& value : values) value *= 2;
    return values;
  }
  void go(int to_pe) { migrate(to_pe); }
  double all() {
    return sum + std::accumulate(kept.begin(), kept.end(), std::accumulate(given.begin(), given.end(), 0.0));
  }
  std::vector<double> kept;
  std::vector<double> given;
  double sum = 0;
};

TEST(Migration, APupFunctionMayPackConstantsAndTemporaries) {
  for (const int size : {10, 100'000}) {
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([size](Runtime& runtime) -> Task<> {
      auto frugal = Array<Frugal>::create(runtime, Shape(1).on_pe(0), size);
      for (const int to_pe : {1, 0}) {
        co_await frugal[0].call<&Frugal::go>(to_pe);
        EXPECT_EQ(co_await frugal[0].call<&Frugal::all>(), 7.0 * size);
      }
    }),
              "");
  }
}

// Its large vectors land before the new PE knows the collection, which comes through the tree.
struct Hasty : Chare<Hasty> {
  explicit Hasty(std::vector<int> values_in) : values(std::move(values_in)) {
    migrate(runtime().num_pes() - 1);
  }
  explicit Hasty(Moved) {}
  void pup(Pup& p) { p | values; }
  std::vector<int> sent() { return values; }
  std::vector<int> values;
};

TEST(Migration, MayOvertakeTheCreationOfTheCollection) {
  for (const char* machine : {"loopback", "ucx"}) {
    testing::InProcessJob job(30, machine);
    EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
      std::vector<int> values(100'000);
      std::iota(values.begin(), values.end(), 7);
      auto hasty = Array<Hasty>::create(runtime, Shape(3).on_pe(0), values);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await hasty[i].call<&Hasty::sent>(), values);
    }),
              "");
  }
}

struct Leaver : Chare<Leaver> {
  void pup(Pup&) {}
  void departed() override { throw std::runtime_error("no goodbye"); }
  void go(int to_pe) { migrate(to_pe); }
};

TEST(Migration, AnExceptionOfDepartedEndsTheJobAndNamesTheMove) {
  testing::InProcessJob job(2);
  const std::string error = job.run([](Runtime& runtime) -> Task<> {
    auto leavers = Array<Leaver>::create(runtime, Shape(1).on_pe(0));
    co_await leavers[0].call<&Leaver::go>(1);
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(says(error, "no goodbye"));
  EXPECT_TRUE(says(error, "Leaver[0] on PE 0 to PE 1"));
}

TEST(Migration, LargeVectorsTravelBesideTheState) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int scale : {0, 1, 3}) {
      SCOPED_TRACE(scale);
      testing::InProcessJob job(3, machine);
      EXPECT_EQ(job.run([scale](Runtime& runtime) -> Task<> {
        auto haulers = Array<Hauler>::create(runtime, {3}, scale);
        co_await haulers.created();
        for (int round = 0; round < 4; ++round) {
          for (int i = 0; i < 3; ++i) haulers[i].send<&Hauler::go>((i + round) % 3);
          for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await haulers[i].call<&Hauler::check>(scale), "");
        }
      }),
                "");
    }
  }
}

// An element moves as soon as it can, to a PE that may not have made the collection yet.
struct Eager : Chare<Eager> {
  Eager() : values(50'000, 3) { migrate((pe() + 1) % num_pes()); }
  explicit Eager(Moved) {}
  void pup(Pup& p) { p | values; }
  bool is_whole() {
    return values.size() == 50'000 && std::ranges::all_of(values, [](int one) { return one == 3; });
  }
  std::vector<int> values;
};

TEST(Migration, AnElementMayArriveBeforeItsCollection) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int round = 0; round < 10; ++round) {
      testing::InProcessJob job(5, machine);
      EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
        auto eager = Array<Eager>::create(runtime, {10});
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(co_await eager[i].call<&Eager::is_whole>());
      }),
                "");
    }
  }
}

struct Unfit : Chare<Unfit> {
  void pup(Pup& p) {
    p | value;
    if (p.is_sizing()) p | value;
  }
  void go(int to_pe) { migrate(to_pe); }
  int value = 0;
};
TEST(Migration, NamesAPupFunctionThatVisitsDifferentMembers) {
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto unfit = Array<Unfit>::create(runtime, {2});
    unfit[0].send<&Unfit::go>(1);
    co_await runtime.quiescence();
  });
  EXPECT_TRUE(says(failure, "the pup function of")) << failure;
  EXPECT_TRUE(says(failure, "visit the same members")) << failure;
}

TEST(Migration, ReductionsAreCompleteWhereverTheElementsAre) {
  for (int num_pes : {1, 2, 3, 4, 11}) {
    SCOPED_TRACE(num_pes);
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      constexpr int kElements = 22;
      auto rovers = Array<Rover>::create(runtime, {kElements}, 1);
      int all = 0;
      for (int i = 0; i < kElements; ++i) all += i;
      // All to one PE, and back, and everywhere; each element contributes before or behind its move.
      for (int round = 0; round < 40; ++round) {
        Future<int> sum(runtime);
        for (int i = 0; i < kElements; ++i) {
          const int to_pe = round % 4 == 0   ? round / 4 % num_pes
                            : round % 4 == 1 ? (i * 7 + round) % num_pes
                                             : (i + round) % num_pes;
          const bool first = (i + round) % 3 == 0;
          if (first) rovers[i].send<&Rover::give>(i, sum);
          rovers[i].send<&Rover::go>(to_pe);
          if (!first) rovers[i].send<&Rover::give>(i, sum);
        }
        EXPECT_EQ(co_await sum, all) << round;
        int parts = 0;
        for (int part : co_await rovers.call<&Rover::take_part>(1)) parts += part;
        EXPECT_EQ(parts, kElements * kElements) << round;
      }
    }),
              "");
  }
}

TEST(Migration, ResultsThatGoToAllElementsReachEachOnce) {
  for (int num_pes : {2, 4, 5}) {
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run([num_pes](Runtime& runtime) -> Task<> {
      auto rovers = Array<Rover>::create(runtime, {8}, 1);
      for (int round = 1; round <= 30; ++round) {
        rovers.send<&Rover::give_to_all>(round);
        for (int i = 0; i < 8; ++i) rovers[i].send<&Rover::go>((i + round) % num_pes);
      }
      co_await runtime.quiescence();
      for (const std::string& log : co_await rovers.call<&Rover::log>()) EXPECT_EQ(log, "0,30");
    }),
              "");
  }
}

// Each element makes its own way: it contributes and moves at random, always to the same reductions in the same order.
struct Listener : Chare<Listener> {
  void hear(int sum) { sums.push_back(sum); }
  std::vector<int> heard() { return sums; }
  std::vector<int> sums;
};
struct Voter : Chare<Voter> {
  explicit Voter(Array<Listener> listeners_in) : listeners(listeners_in) {}
  explicit Voter(Moved) {}
  void pup(Pup& p) { p | listeners | next | to_all | to_one; }
  void run(int total, unsigned seed) {
    if (next == total) return;
    std::mt19937 random(seed + static_cast<unsigned>(linear_index()) * 7919);
    if (random() % 2 == 0) {
      migrate(static_cast<int>(random() % static_cast<unsigned>(num_pes())));
    } else {
      const runtime::Target targets[] = {proxy().target<&Voter::hear_all>(),
                                         proxy()[1].target<&Voter::hear_one>(),
                                         listeners.target<&Listener::hear>()};
      contribute(next, Reducer::kSum, targets[static_cast<unsigned>(next) % 3]);
      ++next;
    }
    proxy()[linear_index()].send<&Voter::run>(total, random());
  }
  void hear_all(int sum) { to_all.push_back(sum); }
  void hear_one(int sum) { to_one.push_back(sum); }
  std::vector<int> heard_as_all() { return to_all; }
  std::vector<int> heard_as_one() { return to_one; }
  Array<Listener> listeners;
  int next = 0;
  std::vector<int> to_all;
  std::vector<int> to_one;
};

std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  return values;
}

TEST(Migration, ReductionsWithAnyTargetUnderRandomMoves) {
  constexpr int kElements = 24;
  constexpr int kReductions = 60;
  std::vector<int> expected[3];
  for (int i = 0; i < kReductions; ++i) expected[i % 3].push_back(i * kElements);
  for (int num_pes : {2, 3, 4, 8, 16}) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
      SCOPED_TRACE(::testing::Message() << num_pes << " PEs, seed " << seed);
      testing::InProcessJob job(num_pes);
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        auto listeners = Array<Listener>::create(runtime, {num_pes});
        auto voters = Array<Voter>::create(runtime, {kElements}, listeners);
        voters.send<&Voter::run>(kReductions, seed);
        co_await runtime.quiescence();
        for (const auto& heard : co_await voters.call<&Voter::heard_as_all>()) {
          EXPECT_EQ(sorted(heard), expected[0]);
        }
        EXPECT_EQ(sorted(co_await voters[1].call<&Voter::heard_as_one>()), expected[1]);
        for (const auto& heard : co_await listeners.call<&Listener::heard>()) {
          EXPECT_EQ(sorted(heard), expected[2]);
        }
      }),
                "");
    }
  }
}

// --- Random traffic

// On every PE: sends numbered calls, and moves elements, at random.
struct Traffic : Chare<Traffic> {
  Task<std::vector<int>> run(Array<Rover> rovers, unsigned seed, int steps) {
    std::mt19937 random(seed + static_cast<unsigned>(pe()) * 7919);
    const int elements = static_cast<int>(rovers.shape().size());
    std::vector<int> sent(static_cast<std::size_t>(elements));
    int broadcasts = 0;
    for (int step = 0; step < steps; ++step) {
      const int i = static_cast<int>(random() % static_cast<unsigned>(elements));
      switch (random() % 8) {
        case 0:
          rovers.send<&Rover::hear_all>(pe(), broadcasts++);
          break;
        case 1:
        case 2:
          rovers[i].send<&Rover::go>(static_cast<int>(random() % static_cast<unsigned>(num_pes())));
          break;
        case 3:
          // A gather whose broadcast meets elements that move.
          if (random() % 8 == 0) {
            const std::vector<int> where = co_await rovers.call<&Rover::where_now>();
            EXPECT_EQ(static_cast<int>(where.size()), elements);
          }
          break;
        case 4:
          co_await yield_now(runtime());
          break;
        default:
          rovers[i]
              .with_priority(static_cast<int>(random() % 3) - 1)
              .send<&Rover::hear>(pe(), sent[static_cast<std::size_t>(i)]++);
      }
    }
    sent.push_back(broadcasts);
    co_return sent;
  }
};

void run_traffic(const char* machine, int num_pes, int elements, int steps, int cargo_size, unsigned seed) {
  SCOPED_TRACE(base::Error(base::StatusCode::kInvalidArgument, "seed " + std::to_string(seed)).what());
  alive = 0;
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto rovers = Array<Rover>::create(runtime, {elements}, cargo_size);
    auto traffic = Group<Traffic>::create(runtime);
    const auto sent = co_await traffic.call<&Traffic::run>(rovers, seed, steps);
    co_await runtime.quiescence();
    std::size_t broadcasts = 0;
    for (const auto& of_pe : sent) broadcasts += static_cast<std::size_t>(of_pe.back());
    const std::vector<std::string> logs = co_await rovers.call<&Rover::log>();
    for (int i = 0; i < elements; ++i) {
      std::size_t calls = 0;
      for (const auto& of_pe : sent) calls += static_cast<std::size_t>(of_pe[static_cast<std::size_t>(i)]);
      EXPECT_EQ(logs[static_cast<std::size_t>(i)], std::to_string(calls) + "," + std::to_string(broadcasts));
    }
    EXPECT_EQ(alive, elements);
    co_await rovers.destroy();
    EXPECT_EQ(alive, 0);
  }),
            "");
}

TEST(Migration, LosesAndDoublesNoCallUnderRandomTraffic) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  for (unsigned run = 0; run < 20; ++run) {
    run_traffic("loopback", 2 + static_cast<int>(run % 6), 1 + static_cast<int>(run * 3 % 17), 800, 4,
                seed + run);
  }
}

TEST(Migration, LosesAndDoublesNoCallThroughUcx) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  // Small and large states: a large one is overtaken by the messages that follow it.
  for (int cargo_size : {0, 20'000}) run_traffic("ucx", 4, 9, 1000, cargo_size, seed);
}

}  // namespace
}  // namespace weft::chare
