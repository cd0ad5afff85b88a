#include "runtime/collective/quiescence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/handlers.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

struct Spreader : Chare<Spreader> {
  void spread(int depth) {
    ++calls;
    if (depth == 0) return;
    for (int i = 1; i <= 2; ++i) proxy()[(index() * 2 + i) % shape_size()].send<&Spreader::spread>(depth - 1);
  }
  int shape_size() const { return static_cast<int>(collection().shape().size()); }
  int total() { return calls; }
  int calls = 0;
};

TEST(Quiescence, WaitsForTheLastMessageOfACascade) {
  testing::InProcessJob job(4);
  int calls = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto spreaders = Array<Spreader>::create(runtime, {13});
    spreaders[0].send<&Spreader::spread>(10);
    co_await runtime.quiescence();
    for (int one : co_await spreaders.call<&Spreader::total>()) calls += one;
  }),
            "");
  EXPECT_EQ(calls, (1 << 11) - 1);
}

TEST(Quiescence, AnIdleJobIsQuiescentAtOnceAndAgain) {
  testing::InProcessJob job(3);
  int times = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    for (; times < 5; ++times) co_await runtime.quiescence();
  }),
            "");
  EXPECT_EQ(times, 5);
}

struct Asker : Chare<Asker> {
  Task<> ask() { co_await runtime().quiescence(); }
};

TEST(Quiescence, AnyPeMayAsk) {
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto askers = Group<Asker>::create(runtime);
    co_await askers.call<&Asker::ask>();
  }),
            "");
}

// PE 0 may have stopped by then: what it is sent would never arrive, and the sender would wait for ever.
TEST(Quiescence, APeThatIsEndingAnswersNoProbe) {
  struct Sends final : Observer {
    void message_sent(const MessageEvent& event) override { handlers.push_back(event.handler); }
    std::vector<HandlerId> handlers;
  };
  testing::InProcessJob job(11);
  std::vector<Sends> sends(11);
  for (int pe = 1; pe < 11; ++pe) job.runtime(pe).set_observer(&sends[static_cast<std::size_t>(pe)]);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    runtime.exit(0);
    co_await runtime.quiescence();
  }),
            "");
  for (const Sends& of_pe : sends) {
    EXPECT_EQ(std::ranges::count(of_pe.handlers, kReductionPartialHandler), 0);
  }
}

}  // namespace
}  // namespace weft::runtime
