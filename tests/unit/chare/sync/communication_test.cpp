// What elements send one another, in the snapshots of a job.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "balance/strategy_table.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/sync/sync_worker.h"

namespace weft::chare::sync_testing {
namespace {

using balance::Communication;
using balance::Snapshot;

constexpr const char* kCommunicationName = "of_the_test";

// From, to, messages, bytes.
using Edges = std::vector<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>>;

// Sends to others on request.
struct Talker : Chare<Talker> {
  void pup(Pup& p) { p | over; }
  void resume_from_sync() override { contribute(1, Reducer::kSum, target_of(over)); }

  void sync(Future<int> target) {
    over = std::move(target);
    at_sync();
  }
  void sync_with(double load_s, Future<int> target) {
    set_load_s(load_s);
    sync(std::move(target));
  }
  void go(int to_pe) { migrate(to_pe); }
  void tell(std::vector<int> to, int times) {
    for (int i = 0; i < times; ++i) {
      for (const int index : to) proxy()[index].send<&Talker::hear>(std::uint64_t{7});
    }
  }
  void tell_bytes(std::vector<int> to, int size) {
    for (const int index : to) {
      proxy()[index].send<&Talker::hear_bytes>(std::vector<std::uint8_t>(static_cast<std::size_t>(size)));
    }
  }
  void tell_text(std::vector<int> to, std::string text) {
    for (const int index : to) proxy()[index].send<&Talker::hear_text>(text);
  }
  void tell_view(std::vector<int> to) {
    const std::vector<double> values(10);
    for (const int index : to) proxy()[index].send<&Talker::hear_view>(values);
  }
  void tell_all() { proxy().send<&Talker::hear>(std::uint64_t{7}); }
  Task<int> ask(std::vector<int> whom) {
    int sum = 0;
    for (const int index : whom) sum += co_await proxy()[index].call<&Talker::pe_now>();
    co_return sum;
  }
  Task<> stream(int peer, int size, bool sends) {
    Channel channel(*this, proxy()[peer]);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    if (sends) {
      co_await channel.send(bytes);
    } else {
      co_await channel.recv(bytes);
    }
  }
  void hear(std::uint64_t) {}
  void hear_bytes(std::vector<std::uint8_t>) {}
  void hear_text(std::string) {}
  void hear_view(std::span<const double>) {}
  int pe_now() { return pe(); }
  bool has_table() { return load()->messages != nullptr; }

  Future<int> over;
};

Task<> step(Runtime& runtime, Array<Talker> talkers) {
  Future<int> over(runtime);
  talkers.send<&Talker::sync>(over);
  EXPECT_EQ(co_await over, static_cast<int>(talkers.collection().shape().size()));
}

// Runs `main` on three PEs. Returns the edges of each step.
std::vector<Edges> edges_of(std::function<Task<>(Runtime&)> main,
                            Communication communication = Communication::kRead) {
  std::vector<Edges> seen;
  balance::register_strategy(
      kCommunicationName,
      [&seen](const Snapshot& snapshot) {
        Edges& edges = seen.emplace_back();
        for (const auto& edge : snapshot.edges)
          edges.emplace_back(edge.from, edge.to, edge.messages, edge.bytes);
        return balance::present_placement(snapshot);
      },
      communication);
  {
    InProcessJob job(3);
    use_strategy(job, kCommunicationName);
    EXPECT_EQ(job.run(std::move(main)), "");
  }
  balance::unregister_strategy(kCommunicationName);
  return seen;
}

// Elements 0 and 1 are on PE 0, 2 and 3 on PE 1, 4 and 5 on PE 2.
TEST(SyncCommunication, CallsOnOnePeAndBetweenPesCountAlike) {
  const auto seen = edges_of([](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, {6});
    const std::vector<int> both = list(1, 5);
    co_await talkers[0].call<&Talker::tell>(both, 3);
    co_await talkers[4].call<&Talker::tell>(list(5), 1);
    co_await step(runtime, talkers);
    co_await talkers[0].call<&Talker::tell_bytes>(both, 100);
    co_await step(runtime, talkers);
    co_await talkers[0].call<&Talker::tell_text>(both, std::string("hello"));
    co_await step(runtime, talkers);
    co_await talkers[0].call<&Talker::ask>(both);
    co_await step(runtime, talkers);
    co_await talkers[0].call<&Talker::tell_view>(both);
    co_await talkers[2].call<&Talker::tell_bytes>(list(3, 4), 100'000);
    co_await step(runtime, talkers);
    co_await step(runtime, talkers);
  });
  ASSERT_EQ(seen.size(), 6U);
  EXPECT_EQ(seen[0], (Edges{{0, 1, 3, 24}, {0, 5, 3, 24}, {4, 5, 1, 8}}));
  EXPECT_EQ(seen[1], (Edges{{0, 1, 1, 108}, {0, 5, 1, 108}}));  // with the number of elements
  EXPECT_EQ(seen[2], (Edges{{0, 1, 1, 13}, {0, 5, 1, 13}}));
  EXPECT_EQ(seen[3], (Edges{{0, 1, 1, 0}, {0, 5, 1, 0}}));
  ASSERT_EQ(seen[4].size(), 4U);
  EXPECT_EQ(std::get<3>(seen[4][0]), std::get<3>(seen[4][1]));  // the views
  EXPECT_GE(std::get<3>(seen[4][0]), 80U);
  EXPECT_EQ(seen[4][2], (Edges{{2, 3, 1, 100'008}})[0]);
  EXPECT_EQ(seen[4][3], (Edges{{2, 4, 1, 100'012}})[0]);  // it travels out of band
  EXPECT_EQ(seen[5], Edges());
}

TEST(SyncCommunication, OtherCallsDoNotCount) {
  const auto seen = edges_of([](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, {6});
    auto others = Array<Talker>::create(runtime, {6});
    co_await talkers[2].call<&Talker::tell>(list(2), 3);  // itself
    co_await talkers[2].call<&Talker::tell_all>();
    co_await others[0].call<&Talker::tell>(list(1), 3);
    co_await step(runtime, talkers);
  });
  EXPECT_EQ(seen, std::vector<Edges>(1));
}

TEST(SyncCommunication, SendsOfChannelsCount) {
  for (const int size : {100, 1'000'000}) {
    const auto seen = edges_of([size](Runtime& runtime) -> Task<> {
      auto talkers = Array<Talker>::create(runtime, {6});
      auto sends = talkers[1].call<&Talker::stream>(4, size, true);
      co_await talkers[4].call<&Talker::stream>(1, size, false);
      co_await sends;
      co_await step(runtime, talkers);
    });
    EXPECT_EQ(seen, (std::vector<Edges>{{{1, 4, 1, static_cast<std::uint64_t>(size)}}}));
  }
}

TEST(SyncCommunication, AnElementThatMovesTakesItsCountsAlong) {
  const auto seen = edges_of([](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, {6});
    co_await talkers[0].call<&Talker::tell>(list(3, 5), 2);
    for (const int pe : {2, 1}) {
      co_await talkers[0].call<&Talker::go>(pe);
      co_await runtime.quiescence();
      EXPECT_EQ(co_await talkers[0].call<&Talker::pe_now>(), pe);
      co_await talkers[0].call<&Talker::tell>(list(3, 4), 1);
    }
    co_await step(runtime, talkers);
  });
  EXPECT_EQ(seen, (std::vector<Edges>{{{0, 3, 4, 32}, {0, 4, 2, 16}, {0, 5, 2, 16}}}));
}

TEST(SyncCommunication, TheTableOfAnElementIsBounded) {
  const auto seen = edges_of([](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, {300});
    for (int i = 10; i < 300; ++i) {
      talkers[0].send<&Talker::tell>(list(i, 1 + i % 5), 1);
      talkers[0].send<&Talker::tell_bytes>(list(1 + i % 5), 50);
    }
    co_await runtime.quiescence();
    co_await step(runtime, talkers);
  });
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_LE(seen[0].size(), SentMessages::kMostReceivers);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(seen[0].at(i), (Edges{{0, i + 1, 116, 58 * (58 + 8)}})[0]);
  }
}

TEST(SyncCommunication, AJobWhoseStrategyIgnoresItCountsNothing) {
  const auto seen = edges_of(
      [](Runtime& runtime) -> Task<> {
        auto talkers = Array<Talker>::create(runtime, {6});
        co_await talkers[0].call<&Talker::tell>(list(1, 5), 3);
        EXPECT_FALSE(co_await talkers[0].call<&Talker::has_table>());
        co_await step(runtime, talkers);
      },
      Communication::kIgnored);
  EXPECT_EQ(seen, std::vector<Edges>(1));
}

// PE 0 has twice the load of PE 1, and gives two of its eight elements. `talkers_of_pe_0` talk to elements of PE 1, the others to
// one another. Returns the elements of PE 0 that are on PE 1 afterwards.
std::vector<int> given_by_diffusion(const std::vector<int>& talkers_of_pe_0) {
  std::vector<int> given;
  InProcessJob job(2);
  use_strategy(job, "diffusion");
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto talkers = Array<Talker>::create(runtime, {16});
    const auto talks = [&](int i) { return std::ranges::find(talkers_of_pe_0, i) != talkers_of_pe_0.end(); };
    for (int i = 0; i < 8; ++i) {
      int other = (i + 1) % 8;
      while (talks(other)) other = (other + 1) % 8;
      co_await talkers[i].call<&Talker::tell>(list(talks(i) ? 8 + i : other), 10);
    }
    Future<int> over(runtime);
    for (int i = 0; i < 16; ++i) talkers[i].send<&Talker::sync_with>(i < 8 ? 2.0 : 1.0, over);
    EXPECT_EQ(co_await over, 16);
    const std::vector<int> pes = co_await talkers.call<&Talker::pe_now>();
    for (int i = 0; i < 8; ++i) {
      if (pes[static_cast<std::size_t>(i)] == 1) given.push_back(i);
    }
  }),
            "");
  return given;
}

TEST(SyncCommunication, DiffusionPlacesElementsThatTalkToEachOtherTogether) {
  for (const std::vector<int>& talkers : {list(0, 4), list(1, 6), list(3, 5), list(2, 7)}) {
    EXPECT_EQ(given_by_diffusion(talkers), talkers);
  }
}

}  // namespace
}  // namespace weft::chare::sync_testing
