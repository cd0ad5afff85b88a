// Channels whose chares are destroyed: every operation at both ends ends once, and nothing stays.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/channel/channel_pair.h"

namespace weft::channel {
namespace {

using base::StatusCode;
using testing::TestMemory;

// The parameters: machine, PEs, memory, size, check mode.
using Case = std::tuple<std::string, int, bool, std::size_t, bool>;

struct Lone : Chare<Lone> {
  explicit Lone(int name_in) : name(name_in) { all.at(static_cast<std::size_t>(name)) = this; }
  ~Lone() override { all.at(static_cast<std::size_t>(name)) = nullptr; }
  int name;
  static inline std::array<Lone*, 2> all{};
};

struct ClosingTest : ::testing::TestWithParam<Case> {
  ClosingTest() : job(std::get<int>(GetParam()), std::get<std::string>(GetParam())) {
    if (std::get<4>(GetParam())) {
      for (int pe = 0; pe < job.num_pes(); ++pe) channels(pe).turn_on_checks();
    }
    make_nodes();
  }
  void make_nodes() {
    for (int node = 0; node < 2; ++node) {
      nodes[static_cast<std::size_t>(node)] =
          Singleton<Lone>::create(job.runtime(0), node % job.num_pes(), node);
    }
    turn([] { return Lone::all[0] != nullptr && Lone::all[1] != nullptr; });
  }
  Channels& channels(int pe) { return job.runtime(pe).model<Channels>(); }
  int pe_of(std::size_t node) const { return static_cast<int>(node) % job.num_pes(); }
  Channel end_of(std::size_t node) {
    // The proxy of the other chare on this chare's PE.
    auto& chares = job.runtime(pe_of(node)).model<chare::Chares>();
    return Channel(*Lone::all[node], Peer(chares.collection(nodes[1 - node].collection().id()), 0));
  }
  void turn(const std::function<bool()>& done) { ASSERT_EQ(job.run_until(done), ""); }
  void destroy(std::size_t node) {
    bool done = false;
    nodes[node].destroy().then([&done](const Future<>&) { done = true; });
    turn([&done] { return done; });
    turn([node] { return Lone::all[node] == nullptr; });
  }
  void destroy_both() {
    for (std::size_t node = 0; node < 2; ++node) {
      if (Lone::all[node] != nullptr) destroy(node);
    }
  }
  // All is over, and no end is left.
  void expect_nothing_left() {
    bool quiet = false;
    job.runtime(0).quiescence().then([&quiet](const Future<>&) { quiet = true; });
    turn([&quiet] { return quiet; });
    turn([this] {
      std::size_t left = 0;
      for (int pe = 0; pe < job.num_pes(); ++pe) left += channels(pe).ends().size();
      return left == 0;
    });
  }
  TestMemory make(std::size_t node, std::uint8_t first) {
    return TestMemory(job.memory(pe_of(node)), std::get<2>(GetParam()) ? kDevice : memory::Place(),
                      std::get<3>(GetParam()), first);
  }
  void finish(const std::vector<OutcomePtr>& outcomes) {
    turn([&] { return std::ranges::all_of(outcomes, [](const auto& one) { return one->done; }); });
  }
  static void expect_destroyed(const Outcome& outcome) {
    EXPECT_TRUE(outcome.done);
    EXPECT_EQ(outcome.status.code(), StatusCode::kClosed) << outcome.status.to_string();
    EXPECT_NE(outcome.status.message().find("the other end has been destroyed"), std::string::npos)
        << outcome.status.to_string();
  }

  testing::InProcessJob job;
  std::array<Singleton<Lone>, 2> nodes;
};

TEST_P(ClosingTest, ASurvivorGetsWhatWasSentAndAnErrorForTheRest) {
  Channel mine = end_of(0);
  Channel theirs = end_of(1);
  TestMemory first_out = make(1, 3);
  TestMemory first_in = make(0, 100);
  TestMemory second_in = make(0, 50);
  TestMemory third_in = make(0, 50);
  const OutcomePtr first = ChannelPair::watch(mine.recv(first_in.buffer()));
  const OutcomePtr second = ChannelPair::watch(mine.recv(second_in.buffer()));
  const OutcomePtr sent = ChannelPair::watch(theirs.send(first_out.buffer()));
  finish({sent, first});
  destroy(1);
  finish({second});
  EXPECT_TRUE(first->status.ok()) << first->status.to_string();
  EXPECT_EQ(first_in.now(), first_out.filled());
  expect_destroyed(*second);
  const OutcomePtr third = ChannelPair::watch(mine.recv(third_in.buffer()));
  const OutcomePtr late = ChannelPair::watch(mine.send(third_in.buffer()));
  finish({third, late});
  expect_destroyed(*third);
  expect_destroyed(*late);
  EXPECT_EQ(second_in.now(), second_in.filled());
  destroy_both();
  expect_nothing_left();
}

TEST_P(ClosingTest, SendsThatWereNotReceivedEnd) {
  Channel mine = end_of(0);
  static_cast<void>(end_of(1));
  std::vector<std::unique_ptr<TestMemory>> out;
  std::vector<OutcomePtr> sent;
  for (std::uint8_t i = 0; i < 5; ++i) {
    out.push_back(std::make_unique<TestMemory>(make(0, i)));
    sent.push_back(ChannelPair::watch(mine.send(out.back()->buffer())));
    if (i == 1) {
      for (int turns = 0; turns < 100; ++turns) {
        for (int pe = 0; pe < job.num_pes(); ++pe) job.runtime(pe).step();
      }
    }
  }
  destroy(1);
  finish(sent);
  destroy_both();
  expect_nothing_left();
}

TEST_P(ClosingTest, SendsToAChareThatNeverMadeItsEndFail) {
  Channel mine = end_of(0);
  TestMemory out = make(0, 3);
  const OutcomePtr sent = ChannelPair::watch(mine.send(out.buffer()));
  const OutcomePtr received = ChannelPair::watch(mine.recv(out.buffer()));
  destroy(1);
  finish({sent, received});
  expect_destroyed(*sent);
  expect_destroyed(*received);
  destroy_both();
  expect_nothing_left();
}

TEST_P(ClosingTest, BothMayBeDestroyedAtTheSameTime) {
  Channel mine = end_of(0);
  Channel theirs = end_of(1);
  TestMemory out = make(0, 3);
  TestMemory in = make(1, 3);
  const OutcomePtr sent = ChannelPair::watch(mine.send(out.buffer()));
  const OutcomePtr unreceived = ChannelPair::watch(theirs.send(in.buffer()));
  int done = 0;
  for (auto& node : nodes) node.destroy().then([&done](const Future<>&) { ++done; });
  turn([&done] { return done == 2; });
  finish({sent, unreceived});
  expect_nothing_left();
}

TEST_P(ClosingTest, GenerationsOfChannelsLeaveNothing) {
  for (std::uint8_t generation = 0; generation < 20; ++generation) {
    Channel mine = end_of(0);
    Channel theirs = end_of(1);
    TestMemory out = make(0, generation);
    TestMemory in = make(1, 100);
    const OutcomePtr received = ChannelPair::watch(theirs.recv(in.buffer()));
    const OutcomePtr sent = ChannelPair::watch(mine.send(out.buffer()));
    finish({sent, received});
    EXPECT_TRUE(received->status.ok()) << received->status.to_string();
    EXPECT_EQ(in.now(), out.filled());
    destroy_both();
    expect_nothing_left();
    make_nodes();
  }
}

TEST_P(ClosingTest, AHeldEndStaysAndItsOperationsFail) {
  Channel mine = end_of(0);
  static_cast<void>(end_of(1));
  std::shared_ptr<void> held = mine.hold();
  destroy_both();
  TestMemory out = make(0, 3);
  const OutcomePtr sent = ChannelPair::watch(mine.send(out.buffer()));
  const OutcomePtr received = ChannelPair::watch(mine.recv(out.buffer()));
  finish({sent, received});
  for (const OutcomePtr& one : {sent, received}) {
    EXPECT_NE(one->status.message().find("this end has been destroyed"), std::string::npos)
        << one->status.to_string();
  }
  EXPECT_EQ(channels(0).ends().size(), 1u);
  held.reset();
  expect_nothing_left();
}

// The receive of a closed end fails before the peer has answered; what the peer sends has its number, and is dropped.
TEST_P(ClosingTest, AHeldEndReceivesNothingBeforeItsPeerHasAnswered) {
  Channel mine = end_of(0);
  Channel theirs = end_of(1);
  std::shared_ptr<void> held = mine.hold();
  TestMemory out = make(1, 3);
  TestMemory in = make(0, 100);
  nodes[0].destroy().then([](const Future<>&) {});
  turn([] { return Lone::all[0] == nullptr; });
  const OutcomePtr received = ChannelPair::watch(mine.recv(in.buffer()));
  const OutcomePtr sent = ChannelPair::watch(theirs.send(out.buffer()));
  finish({received, sent});
  EXPECT_EQ(received->status.code(), StatusCode::kClosed) << received->status.to_string();
  EXPECT_EQ(in.now(), in.filled());
  held.reset();
  destroy_both();
  expect_nothing_left();
}

// A chare that lives on has a channel to each generation of others.
TEST_P(ClosingTest, AChareThatLivesOnKeepsNoMailboxes) {
  for (std::uint8_t generation = 0; generation < 10; ++generation) {
    Channel mine = end_of(0);
    Channel theirs = end_of(1);
    TestMemory out = make(1, generation);
    TestMemory in = make(0, 100);
    const OutcomePtr received = ChannelPair::watch(mine.recv(in.buffer()));
    const OutcomePtr sent = ChannelPair::watch(theirs.send(out.buffer()));
    finish({sent, received});
    EXPECT_EQ(in.now(), out.filled());
    destroy(1);
    nodes[1] = Singleton<Lone>::create(job.runtime(0), 1 % job.num_pes(), 1);
    turn([] { return Lone::all[1] != nullptr; });
  }
  destroy_both();
  expect_nothing_left();
}

// A chare with a receive that nothing awaits, as chares of one collection have it.
struct Neighbour : Chare<Neighbour> {
  Neighbour() { ++alive; }
  ~Neighbour() override { --alive; }
  void begin() {
    const int size = static_cast<int>(proxy().shape().size());
    Channel left(*this, proxy()[(index()[0] + size - 1) % size]);
    Channel right(*this, proxy()[(index()[0] + 1) % size], 0);
    receiving.emplace(left.recv(std::span(data)));
    if (index()[0] % 2 != 0) return;  // the receive of the right one gets nothing
    right.send(std::span(data)).detach();
    right.send(std::span(data).first(10)).detach();  // not received
  }
  static inline int alive = 0;
  std::vector<double> data = std::vector<double>(200'000);
  std::optional<Operation> receiving;
};

TEST(ClosingCollections, EndInAnyOrderOfTheirChares) {
  for (const char* machine : {"loopback", "ucx"}) {
    for (int num_pes : {1, 2, 3}) {
      testing::InProcessJob job(num_pes, machine);
      EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
        for (int i = 0; i < 10; ++i) {
          auto neighbours = Array<Neighbour>::create(runtime, Shape(6).with_map(Map::kRoundRobin));
          co_await neighbours.call<&Neighbour::begin>();
          co_await neighbours.destroy();
        }
        co_await runtime.quiescence();
      }),
                "");
      std::size_t left = 1;
      for (int turn = 0; turn < 100'000 && left > 0; ++turn) {
        left = 0;
        for (int pe = 0; pe < num_pes; ++pe) {
          job.runtime(pe).step();
          left += job.runtime(pe).model<Channels>().ends().size();
        }
      }
      EXPECT_EQ(Neighbour::alive, 0);
      EXPECT_EQ(left, 0u) << machine << ", " << num_pes << " PEs";
    }
  }
}

// What holds an end may be released after the job.
TEST(ClosingJobs, AHeldEndMayBeReleasedAfterItsJob) {
  std::shared_ptr<void> held;
  {
    testing::InProcessJob job(1);
    Singleton<Lone>::create(job.runtime(0), 0, 0);
    auto other = Singleton<Lone>::create(job.runtime(0), 0, 1);
    ASSERT_EQ(job.run_until([] { return Lone::all[0] != nullptr && Lone::all[1] != nullptr; }), "");
    held = Channel(*Lone::all[0], other.element()).hold();
  }
  held.reset();
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [machine, num_pes, on_device, size_bytes, is_checked] = info.param;
  std::string name = machine + "_" + std::to_string(num_pes) + "_pes_" + (on_device ? "device_" : "host_") +
                     std::to_string(size_bytes) + (is_checked ? "_checked" : "");
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Host, ClosingTest,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2),
                                            ::testing::Values(false),
                                            ::testing::Values(std::size_t{100}, std::size_t{5000},
                                                              std::size_t{70'000}, std::size_t{1} << 20),
                                            ::testing::Bool()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Device, ClosingTest,
                         ::testing::Combine(::testing::Values("loopback", "ucx"), ::testing::Values(1, 2),
                                            ::testing::Values(true),
                                            ::testing::Values(std::size_t{100}, std::size_t{50'000}),
                                            ::testing::Values(false)),
                         name_of);

}  // namespace
}  // namespace weft::channel
