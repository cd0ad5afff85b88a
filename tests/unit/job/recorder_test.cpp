#include "job/trace/recorder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::job {
namespace {

struct Traced : Chare<Traced> {
  void step() {}
  runtime::Task<> wait() {
    co_await runtime::yield_now(runtime());
    co_await runtime::yield_now(runtime());
  }
};

std::vector<TraceEvent> kinds(const Recorder& recorder) {
  std::vector<TraceEvent> found;
  recorder.for_each([&](const TraceRecord& record) { found.push_back(record.kind); });
  return found;
}

TEST(Recorder, RecordsWhatAMessageRuns) {
  testing::InProcessJob job(1, "loopback");
  Recorder recorder(job.runtime(0), 1 << 20);
  EXPECT_EQ(job.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    auto array = Array<Traced>::create(runtime, 1);
    co_await array[0].call<&Traced::step>();
  }),
            "");
  recorder.stop();
  EXPECT_EQ(job.runtime(0).observer(), nullptr);
  EXPECT_EQ(recorder.num_lost(), 0u);
  std::vector<std::string> methods;
  std::int64_t last_ns = 0;
  recorder.for_each([&](const TraceRecord& record) {
    EXPECT_LE(last_ns, record.time_ns);
    last_ns = record.time_ns;
    if (record.kind == TraceEvent::kEntryBegin) methods.emplace_back(record.name);
  });
  ASSERT_EQ(methods.size(), 2u);
  EXPECT_EQ(methods.front(), kMain);
  EXPECT_TRUE(methods.back().ends_with("Traced::step")) << methods.back();
}

// A coroutine is resumed by the queue, for whatever it waited.
TEST(Recorder, RecordsTheResumptionsOfACoroutine) {
  testing::InProcessJob job(1, "loopback");
  Recorder recorder(job.runtime(0), 1 << 20);
  EXPECT_EQ(job.run([](runtime::Runtime& runtime) -> runtime::Task<> {
    auto array = Array<Traced>::create(runtime, 1);
    co_await array[0].call<&Traced::wait>();
  }),
            "");
  recorder.stop();
  std::uint64_t run = 0;
  std::vector<TraceEvent> found;
  recorder.for_each([&](const TraceRecord& record) {
    if (record.name.ends_with("Traced::wait")) run = record.number;
    if (record.number == run && record.kind <= TraceEvent::kEntryResume) found.push_back(record.kind);
  });
  // It is also reported as suspended when it has ended.
  EXPECT_EQ(found, (std::vector{TraceEvent::kEntryBegin, TraceEvent::kEntrySuspend, TraceEvent::kEntryResume,
                                TraceEvent::kEntrySuspend, TraceEvent::kEntryResume, TraceEvent::kEntryEnd,
                                TraceEvent::kEntrySuspend}));
}

TEST(Recorder, KeepsTheLastEventsOfAFullRing) {
  testing::InProcessJob job(1, "loopback");
  Recorder recorder(job.runtime(0), 3 * Recorder::kEventBytes);
  recorder.idle_began();
  recorder.idle_ended();
  recorder.entry_suspended(nullptr);
  EXPECT_EQ(recorder.num_lost(), 0u);
  recorder.entry_resumed(nullptr);
  EXPECT_EQ(recorder.num_lost(), 1u);
  recorder.stop();
  EXPECT_EQ(kinds(recorder),
            (std::vector{TraceEvent::kIdleEnd, TraceEvent::kEntrySuspend, TraceEvent::kEntryResume}));
}

TEST(Recorder, GivesMessagesTheTimeOfTheEventBehindThem) {
  testing::InProcessJob job(1, "loopback");
  Recorder recorder(job.runtime(0), 6 * Recorder::kEventBytes);
  const runtime::MessageEvent message{};
  recorder.idle_began();
  recorder.idle_ended();  // the oldest that is kept
  recorder.message_delivered(message);
  recorder.message_delivered(message);
  recorder.idle_began();
  recorder.message_delivered(message);
  recorder.message_delivered(message);
  recorder.stop();
  std::vector<std::int64_t> times;
  recorder.for_each([&](const TraceRecord& record) { times.push_back(record.time_ns); });
  ASSERT_EQ(times.size(), 6u);
  EXPECT_LE(times[0], times[3]);
  EXPECT_EQ(times[1], times[3]);
  EXPECT_EQ(times[2], times[3]);
  EXPECT_LE(times[3], times[4]);
  EXPECT_EQ(times[4], times[5]);
}

TEST(Recorder, LeavesTheObserverOfTheProgram) {
  testing::InProcessJob job(1, "loopback");
  runtime::Observer own;
  job.runtime(0).set_observer(&own);
  {
    Recorder recorder(job.runtime(0), 1);
    EXPECT_FALSE(recorder.has_recorded());
  }
  EXPECT_EQ(job.runtime(0).observer(), &own);
  job.runtime(0).set_observer(nullptr);
}

}  // namespace
}  // namespace weft::job
