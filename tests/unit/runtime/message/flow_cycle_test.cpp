// Calls that wait inside a call for PEs that wait themselves: the probe finds the cycle. All PEs are in one thread: the
// idle hook of a PE that waits inside a call gives the other PEs their turns.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/message/flow_control.h"
#include "tests/support/flow_accounts.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

constexpr std::int64_t kFirstWatermark = 100 * FlowControl::kMessageBytes;
constexpr Watermarks kCycleWatermarks{kFirstWatermark, 2 * kFirstWatermark, 10 * kFirstWatermark};
constexpr int kEndless = 3000;  // more than the third watermark lets pass

struct Calling : Chare<Calling> {
  Calling() { all.at(static_cast<std::size_t>(index())) = this; }
  ~Calling() override { all.at(static_cast<std::size_t>(index())) = nullptr; }
  void take() { ++taken; }
  // Calls PE `to` up to `number` times.
  void flood(int to, int number) {
    try {
      for (int i = 0; i < number; ++i) {
        proxy()[to].send<&Calling::take>();
        ++made;
      }
    } catch (const Error& thrown) {
      error = thrown.what();
    }
    is_over = true;
  }
  int taken = 0;
  int made = 0;
  bool is_over = false;
  std::string error;
  static inline std::array<Calling*, 3> all{};
};

// The turns of the other PEs, while this one waits inside a call. A PE that waits itself moves only communication.
struct Turns final : IdleHook {
  Turns(testing::InProcessJob& job_in, int pe_in) : job(job_in), pe(pe_in) {}
  void before_sleep() override {
    is_waiting = true;
    for (int other = 0; other < job.num_pes(); ++other) {
      if (other == pe) continue;
      Runtime& runtime = job.runtime(other);
      if (all->at(static_cast<std::size_t>(other))->is_waiting) {
        runtime.machine().progress();
      } else if (!is_slow) {
        runtime.step();
      }
    }
    is_waiting = false;
    ++number;
    if (number == slow_turns) is_slow = false;
    job.runtime(pe).machine().wake();  // the next sleep of this PE is none
  }
  bool after_sleep() override { return true; }

  testing::InProcessJob& job;
  int pe;
  std::vector<std::unique_ptr<Turns>>* all = nullptr;
  bool is_waiting = false;
  bool is_slow = false;
  int number = 0;
  int slow_turns = 0;
};

struct FlowCycleTest : ::testing::Test {
  static RuntimeOptions options() {
    RuntimeOptions options;
    options.watermarks = kCycleWatermarks;
    return options;
  }
  void start(int num_pes) {
    job = std::make_unique<testing::InProcessJob>(num_pes, "loopback", options());
    for (int pe = 0; pe < num_pes; ++pe) {
      turns.push_back(std::make_unique<Turns>(*job, pe));
      turns.back()->all = &turns;
      job->runtime(pe).set_idle_hook(turns.back().get());
    }
    group = Group<Calling>::create(job->runtime(0));
    EXPECT_EQ(job->run_until([&] { return all_there(); }), "");
    for (int pe = 0; pe < num_pes; ++pe) chares.push_back(on(pe));
  }
  ~FlowCycleTest() override {
    if (job == nullptr) return;
    for (int pe = 0; pe < job->num_pes(); ++pe) job->runtime(pe).set_idle_hook(nullptr);
  }
  Calling* on(int pe) { return Calling::all.at(static_cast<std::size_t>(pe)); }
  bool all_there() {
    for (int pe = 0; pe < job->num_pes(); ++pe) {
      if (on(pe) == nullptr) return false;
    }
    return true;
  }
  void run_until_over(const std::vector<int>& pes) {
    EXPECT_EQ(job->run_until([&] {
      for (int pe : pes) {
        if (!chares[static_cast<std::size_t>(pe)]->is_over) return false;
      }
      return true;
    }),
              "");
  }
  void expect_all_taken() {
    int made = 0;
    for (Calling* one : chares) made += one->made;
    EXPECT_EQ(job->run_until([&] {
      int taken = 0;
      for (Calling* one : chares) taken += one->taken;
      return taken == made;
    }),
              "");
    testing::expect_equal_accounts(*job);
  }

  std::unique_ptr<testing::InProcessJob> job;
  std::vector<std::unique_ptr<Turns>> turns;
  Group<Calling> group;
  std::vector<Calling*> chares;
};

TEST_F(FlowCycleTest, ACallWaitsForASlowPeHoweverLong) {
  start(2);
  turns[0]->is_slow = true;
  turns[0]->slow_turns = 50;
  group[0].send<&Calling::flood>(1, 5000);
  run_until_over({0});
  EXPECT_EQ(chares[0]->error, "");
  EXPECT_EQ(chares[0]->made, 5000);
  EXPECT_GE(turns[0]->number, 50);
  EXPECT_FALSE(job->runtime(0).flow_report().empty());
  expect_all_taken();
}

TEST_F(FlowCycleTest, TwoPesThatFloodEachOtherGetErrors) {
  start(2);
  group[0].send<&Calling::flood>(1, kEndless);
  group[1].send<&Calling::flood>(0, kEndless);
  run_until_over({0, 1});
  // The first that throws returns, and its PE handles what waits: the other one may then go on to its end.
  EXPECT_NE(chares[0]->error + chares[1]->error, "");
  for (Calling* one : chares) {
    if (one->error.empty()) continue;
    EXPECT_NE(one->error.find("wait"), std::string::npos) << one->error;
    EXPECT_GT(one->made, 200) << "calls pass up to the second watermark";
  }
  expect_all_taken();
}

TEST_F(FlowCycleTest, TwoPesThatFloodEachOtherWithLessThanTheLimitEnd) {
  start(2);
  group[0].send<&Calling::flood>(1, 700);
  group[1].send<&Calling::flood>(0, 700);
  run_until_over({0, 1});
  EXPECT_EQ(chares[0]->error + chares[1]->error, "");
  expect_all_taken();
}

TEST_F(FlowCycleTest, ACycleOfThreePesIsFound) {
  start(3);
  for (int pe = 0; pe < 3; ++pe) group[pe].send<&Calling::flood>((pe + 1) % 3, kEndless);
  run_until_over({0, 1, 2});
  EXPECT_NE(chares[0]->error + chares[1]->error + chares[2]->error, "");
  expect_all_taken();
}

// PE 0 waits for PE 1, which waits for PE 2: no cycle.
TEST_F(FlowCycleTest, AChainOfThreePesWaits) {
  start(3);
  group[0].send<&Calling::flood>(1, 3000);
  group[1].send<&Calling::flood>(2, 3000);
  run_until_over({0, 1});
  EXPECT_EQ(chares[0]->error + chares[1]->error, "");
  EXPECT_EQ(chares[0]->made, 3000);
  EXPECT_EQ(chares[1]->made, 3000);
  expect_all_taken();
}

}  // namespace
}  // namespace weft::runtime
