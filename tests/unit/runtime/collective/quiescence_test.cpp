#include "runtime/collective/quiescence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/message/handlers.h"
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

// --- The standstill. Over UCX, because the job must not take the pauses between the polls for a hang.

struct Program final : ProgramActivity {
  std::optional<std::uint64_t> poll() override {
    ++polls;
    return answer(polls);
  }
  std::function<std::optional<std::uint64_t>(int)> answer = [](int) { return std::uint64_t{0}; };
  int polls = 0;
};

TEST(Standstill, ComesWhenNothingIsUnderWay) {
  testing::InProcessJob job(2, "ucx");
  std::vector<Program> programs(2);
  for (int pe = 0; pe < 2; ++pe)
    job.runtime(pe).set_program_activity(&programs[static_cast<std::size_t>(pe)]);
  int calls = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto spreaders = Array<Spreader>::create(runtime, {13});
    spreaders[0].send<&Spreader::spread>(10);
    co_await runtime.standstill();
    for (int one : co_await spreaders.call<&Spreader::total>()) calls += one;
  }),
            "");
  EXPECT_EQ(calls, (1 << 11) - 1);
  for (const Program& program : programs) EXPECT_GE(program.polls, 2);
}

TEST(Standstill, ComesAfterAllThatWaitsForQuiescence) {
  testing::InProcessJob job(2, "ucx");
  int phases = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    const auto work = [](Runtime& here, int& done) -> Task<> {
      auto spreaders = Array<Spreader>::create(here, {5});
      for (; done < 1000; ++done) {
        spreaders[0].send<&Spreader::spread>(2);
        co_await here.quiescence();
      }
    };
    runtime.spawn(work(runtime, phases), "the phases");
    co_await runtime.standstill();
  }),
            "");
  EXPECT_EQ(phases, 1000);
}

TEST(Standstill, ComesAfterOperationsWhoseMessagesAreNotCounted) {
  testing::InProcessJob job(2, "ucx");
  std::optional<Future<>> end;
  Program here;  // two equal polls are a standstill if nothing waits
  here.answer = [&end](int poll) {
    if (poll == 4) end->set();
    return std::uint64_t{0};
  };
  job.runtime(0).set_program_activity(&here);
  EXPECT_EQ(job.run([&end](Runtime& runtime) -> Task<> {
    end.emplace(runtime);
    runtime.note_uncounted(*end);
    co_await runtime.standstill();
    end.reset();
  }),
            "");
  EXPECT_GT(here.polls, 4);
}

TEST(Standstill, ComesAfterSleeps) {
  testing::InProcessJob job(2, "ucx");
  bool is_over = false;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    runtime.sleep(1.5).then([&is_over](const Future<>&) { is_over = true; });
    co_await runtime.standstill();
  }),
            "");
  EXPECT_TRUE(is_over);
}

TEST(Standstill, AProgramThatMayActOrTakesStepsIsNotOver) {
  testing::InProcessJob job(2, "ucx");
  Program here;
  Program there;
  here.answer = [](int poll) { return poll < 3 ? std::nullopt : std::optional<std::uint64_t>(7); };
  there.answer = [](int poll) { return static_cast<std::uint64_t>(poll < 5 ? poll : 5); };
  job.runtime(0).set_program_activity(&here);
  job.runtime(1).set_program_activity(&there);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> { co_await runtime.standstill(); }), "");
  EXPECT_GE(here.polls, 4);
  EXPECT_GE(there.polls, 6);
}

TEST(Standstill, OnlyPe0WaitsForIt) {
  testing::InProcessJob job(2);
  EXPECT_THROW(static_cast<void>(job.runtime(1).standstill()), Error);
}

}  // namespace
}  // namespace weft::runtime
