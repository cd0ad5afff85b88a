#include "job/activity.h"

#include <gtest/gtest.h>

#include "tests/support/in_process_job.h"

namespace weft::job {
namespace {

// A clock that the test moves.
Activity::Clock::time_point now;
void pass(int milliseconds) { now += std::chrono::milliseconds(milliseconds); }

struct Node : Chare<Node> {
  runtime::Task<> work(runtime::Future<> gate) {
    pass(5);
    co_await gate;
    pass(5);
  }
  void open(runtime::Future<> gate) {
    pass(1);
    gate.set();
  }
};

// Without the name's namespaces and the spaces that align the columns.
std::string squeezed(const std::string& line) {
  std::string text;
  for (const char c : line.substr(line.rfind(':') == std::string::npos ? 0 : line.rfind(':') + 1)) {
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  }
  return text;
}

TEST(Activity, SumsTheTimesOfEntryMethodsAndOfIdleness) {
  testing::InProcessJob job(1, "loopback");
  Activity activity(job.runtime(0), [] { return now; });
  // As the scheduler calls them; while the job runs, no time passes on this clock when the PE is idle.
  activity.idle_began();
  pass(2500);
  activity.idle_ended();
  EXPECT_EQ(job.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    auto nodes = Array<Node>::create(runtime, 2);
    runtime::Future<> gate(runtime);
    runtime::Future<> first = nodes[0].call<&Node::work>(gate);
    runtime::Future<> second = nodes[1].call<&Node::work>(gate);
    nodes[0].send<&Node::open>(gate);
    co_await first;
    co_await second;
  }),
            "");
  std::vector<std::string> lines = activity.end();
  for (std::string& line : lines) line = squeezed(line);
  // From its beginning to its end each `work` sees both parts of itself, one of the other `work`, and `open`.
  const std::vector<std::string> expected = {"ran 3 entry methods; busy 0.021000 s, idle 2.500000 s",
                                             "entry method runs seconds", "work 2 0.032000",
                                             "open 1 0.001000"};
  EXPECT_EQ(lines, expected);
  EXPECT_EQ(job.runtime(0).observer(), nullptr);
}

struct Slow : Chare<Slow> {
  void compute(int milliseconds) { pass(milliseconds); }
  runtime::Task<> wait(runtime::Future<> gate) {
    pass(100);
    co_await gate;
  }
};

TEST(Activity, NamesWhatRunsForLongWithoutAWait) {
  testing::InProcessJob job(1, "loopback");
  Activity activity(job.runtime(0), [] { return now; });
  EXPECT_EQ(job.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    auto slow = Array<Slow>::create(runtime, 1);
    runtime::Future<> gate(runtime);
    runtime::Future<> waits = slow[0].call<&Slow::wait>(gate);
    for (const int milliseconds : {99, 250, 100}) co_await slow[0].call<&Slow::compute>(milliseconds);
    gate.set();
    co_await waits;
  }),
            "");
  std::vector<std::string> lines = activity.long_runs();
  ASSERT_EQ(lines.size(), 2u);
  for (std::string& line : lines) line = squeezed(line);
  EXPECT_TRUE(
      lines[0].starts_with("compute has run for 100 ms or more without a wait, 2 times, the longest 0.250 s"))
      << lines[0];
  // It has waited for much longer.
  EXPECT_TRUE(
      lines[1].starts_with("wait has run for 100 ms or more without a wait, 1 time, the longest 0.100 s"))
      << lines[1];
}

// Calls wait behind the first two. What the last one makes ready has not waited for it.
TEST(Activity, NamesWhatKeepsOtherWorkWaiting) {
  testing::InProcessJob job(1, "loopback");
  Activity activity(job.runtime(0), [] { return now; });
  EXPECT_EQ(job.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    auto slow = Array<Slow>::create(runtime, 1);
    for (const int milliseconds : {100, 120, 10}) slow[0].send<&Slow::compute>(milliseconds);
    co_await slow[0].call<&Slow::compute>(300);
  }),
            "");
  const std::vector<std::string> lines = activity.end();
  EXPECT_TRUE(squeezed(lines.back())
                  .starts_with(
                      "compute has kept other work waiting for 100 ms or more, 2 times, the longest 0.120 s"))
      << lines.back();
}

TEST(Activity, MeasuresNothingBesideAnObserverOfTheProgram) {
  testing::InProcessJob job(1, "loopback");
  runtime::Observer of_the_program;
  job.runtime(0).set_observer(&of_the_program);
  {
    Activity activity(job.runtime(0));
    const std::vector<std::string> lines = activity.end();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("an observer of its own"), std::string::npos) << lines[0];
  }
  EXPECT_EQ(job.runtime(0).observer(), &of_the_program);
  job.runtime(0).set_observer(nullptr);
}

TEST(Activity, MessagesCarryNoNumberForIt) {
  testing::InProcessJob job(1, "loopback");
  const Activity activity(job.runtime(0));
  EXPECT_EQ(runtime::Message::pack(job.runtime(0), 0, std::uint64_t{5})->wire_bytes(),
            sizeof(runtime::Envelope) + 8);
}

}  // namespace
}  // namespace weft::job
