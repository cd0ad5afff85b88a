#include "weft/runtime/work_meter.h"

#include <gtest/gtest.h>

#include "weft/runtime/runtime.h"

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using Clock = WorkTime::Clock;
constexpr Clock::duration kWork = std::chrono::microseconds(500);

struct Time final : WorkTime {
  explicit Time(int& alive_in) : alive(alive_in) { ++alive; }
  ~Time() override { --alive; }
  int& alive;
};

void work(Clock::duration time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
  }
}

TEST(WorkMeter, CountsNestedSpansOnce) {
  int alive = 0;
  WorkMeter meter;
  const WorkTimeShare outer(new Time(alive));
  const WorkTimeShare inner(new Time(alive));
  const auto began = Clock::now();
  {
    const WorkMeter::Span of_outer(meter, *outer.get());
    EXPECT_EQ(meter.running(), outer.get());
    work(kWork);
    {
      const WorkMeter::Span of_inner(meter, *inner.get());
      EXPECT_EQ(meter.running(), inner.get());
      work(2 * kWork);
    }
    EXPECT_EQ(meter.running(), outer.get());
    work(kWork);
  }
  const auto elapsed = Clock::now() - began;
  EXPECT_EQ(meter.running(), nullptr);
  EXPECT_GE(outer.get()->time(), 2 * kWork);
  EXPECT_GE(inner.get()->time(), 2 * kWork);
  EXPECT_LE(outer.get()->time() + inner.get()->time(), elapsed);
  outer.get()->reset();
  EXPECT_EQ(outer.get()->seconds(), 0);
}

// A thread that has waited for a processor for as long as the test says.
struct Waiting {
  Clock::duration waited{};
  int questions = 0;
  WorkMeter::WaitClock clock() {
    return [this] {
      ++questions;
      return waited;
    };
  }
};

TEST(WorkMeter, LeavesOutWaitsForAProcessor) {
  int alive = 0;
  WorkMeter meter;
  Waiting waiting;
  const WorkTimeShare time(new Time(alive));
  const auto span = [&](Clock::duration works, Clock::duration waits) {
    time.get()->reset();
    const auto began = Clock::now();
    {
      const WorkMeter::Span measured(meter, *time.get());
      work(works);
      waiting.waited += waits;
    }
    return Clock::now() - began;
  };
  span(10 * kWork, 9 * kWork);
  EXPECT_GE(time.get()->time(), 10 * kWork) << "it counts waits at first";
  meter.leave_out_waits(waiting.clock());
  const Clock::duration elapsed = span(10 * kWork, 8 * kWork);
  EXPECT_LE(time.get()->time(), elapsed - 8 * kWork + WorkMeter::kLong);
  EXPECT_GE(time.get()->time(), 2 * kWork);
  span(10 * kWork, {});
  EXPECT_GE(time.get()->time(), 10 * kWork) << "it has not waited in this one";
  span(4 * kWork, 1'000'000 * kWork);
  EXPECT_EQ(time.get()->time(), Clock::duration::zero()) << "more than it took";
  // Waits between spans belong to none of them.
  for (const Clock::duration pause : {Clock::duration::zero(), WorkMeter::kLong / 2, 3 * kWork}) {
    work(pause);
    waiting.waited += pause;
    span(4 * kWork, {});
    EXPECT_GE(time.get()->time(), 4 * kWork);
  }
  meter.leave_out_waits({});
  span(10 * kWork, 9 * kWork);
  EXPECT_GE(time.get()->time(), 10 * kWork);
}

TEST(WorkMeter, LeavesOutTheWaitsOfTheInnerOrOfTheOuterSpan) {
  int alive = 0;
  WorkMeter meter;
  Waiting waiting;
  meter.leave_out_waits(waiting.clock());
  const WorkTimeShare outer(new Time(alive));
  const WorkTimeShare inner(new Time(alive));
  Clock::duration of_inner_elapsed{};
  {
    const WorkMeter::Span of_outer(meter, *outer.get());
    work(4 * kWork);
    {
      const auto began = Clock::now();
      {
        const WorkMeter::Span of_inner(meter, *inner.get());
        work(4 * kWork);
        waiting.waited += 4 * kWork;
      }
      of_inner_elapsed = Clock::now() - began;
    }
    work(4 * kWork);
  }
  EXPECT_GE(outer.get()->time(), 8 * kWork);
  EXPECT_LE(inner.get()->time(), of_inner_elapsed - 4 * kWork + WorkMeter::kLong);
}

TEST(WorkMeter, AsksForWaitsAtMostOnceInALongTime) {
  int alive = 0;
  WorkMeter meter;
  Waiting waiting;
  meter.leave_out_waits(waiting.clock());
  const WorkTimeShare time(new Time(alive));
  const auto began = Clock::now();
  for (int i = 0; i < 2000; ++i) {
    const WorkMeter::Span measured(meter, *time.get());
    work(kWork / 500);
  }
  // At the beginning of a span, and at its end if it was long, as when another process has had the processor.
  EXPECT_LE(waiting.questions, 2 + 2 * ((Clock::now() - began) / WorkMeter::kLong));
}

TEST(WorkMeter, CountsASpanInsideOneOfTheSameObjectOnce) {
  int alive = 0;
  WorkMeter meter;
  const WorkTimeShare time(new Time(alive));
  const auto began = Clock::now();
  {
    const WorkMeter::Span outer(meter, *time.get());
    work(kWork);
    const WorkMeter::Span inner(meter, *time.get());
    work(kWork);
  }
  EXPECT_LE(time.get()->time(), Clock::now() - began);
  EXPECT_GE(time.get()->time(), 2 * kWork);
}

TEST(WorkMeter, KeepsTheTimeOfAnObjectThatEndsInsideTheSpan) {
  int alive = 0;
  WorkMeter meter;
  {
    WorkTimeShare time(new Time(alive));
    const WorkMeter::Span span(meter, *time.get());
    time = WorkTimeShare();
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

// The meter reads the clock for few of the spans, and the sum is still right.
TEST(WorkMeter, SamplesAnObjectOfShortSpans) {
  int alive = 0;
  WorkMeter meter;
  const WorkTimeShare time(new Time(alive));
  const auto spans = [&](std::uint32_t count) {
    std::uint32_t num_changes = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto before = time.get()->time();
      {
        const WorkMeter::Span span(meter, *time.get());
      }
      num_changes += time.get()->time() != before ? 1 : 0;
    }
    return num_changes;
  };
  // After a span that the machine interrupts, more are measured.
  std::uint32_t changes = 0;
  for (int attempt = 0; attempt < 1000 && (changes < 10 || changes > 11); ++attempt) {
    spans(WorkTime::kExactSpans);
    changes = spans(10 * WorkTime::kSampledVeryShort);
  }
  EXPECT_GE(changes, 10U);
  EXPECT_LE(changes, 11U);

  // One of these is a sample. Then each span is measured, for a while.
  for (std::uint32_t i = 0; i < WorkTime::kSampledVeryShort; ++i) {
    const WorkMeter::Span span(meter, *time.get());
    work(3 * WorkTime::kShort);
  }
  EXPECT_EQ(spans(2 * WorkTime::kExactSpans), 2 * WorkTime::kExactSpans);
  const auto before = time.get()->time();
  {
    const WorkMeter::Span span(meter, *time.get());
    work(kWork);
  }
  EXPECT_GE(time.get()->time() - before, kWork);
}

// Spans inside a span that is not measured are, and the outer one is measured from then on.
TEST(WorkMeter, MeasuresWhatRunsInsideASpanThatIsSkipped) {
  int alive = 0;
  WorkMeter meter;
  const WorkTimeShare outer(new Time(alive));
  const WorkTimeShare inner(new Time(alive));
  for (std::uint32_t i = 0; i < 2 * WorkTime::kExactSpans; ++i) {
    const WorkMeter::Span span(meter, *outer.get());
  }
  for (std::uint32_t i = 0; i < WorkTime::kSampledSpans; ++i) {
    const WorkMeter::Span span(meter, *outer.get());
    const WorkMeter::Span of_inner(meter, *inner.get());
    work(kWork);
  }
  EXPECT_EQ(meter.running(), nullptr);
  EXPECT_GE(inner.get()->time(), WorkTime::kSampledSpans * kWork);
  const auto before = outer.get()->time();
  {
    const WorkMeter::Span span(meter, *outer.get());
    work(kWork);
  }
  EXPECT_GE(outer.get()->time() - before, kWork);
}

Task<> work_twice(Runtime& runtime, Future<> gate, Future<> done) {
  work(kWork);
  co_await gate;
  EXPECT_NE(runtime.meter().running(), nullptr);
  work(kWork);
  co_await yield_now(runtime);
  EXPECT_NE(runtime.meter().running(), nullptr);
  work(kWork);
  done.set();
}

// A coroutine counts where it was started, before and after each await, and not while it waits.
TEST(WorkMeter, CountsCoroutinesAfterTheirAwaits) {
  int alive = 0;
  {
    weft::testing::InProcessJob job(1);
    EXPECT_EQ(job.run([&alive](Runtime& runtime) -> Task<> {
      WorkTimeShare time(new Time(alive));
      Future<> gate(runtime);
      Future<> done(runtime);
      const auto began = Clock::now();
      {
        const WorkMeter::Span span(runtime.meter(), *time.get());
        runtime.spawn(work_twice(runtime, gate, done), "test");
      }
      EXPECT_GE(time.get()->time(), kWork);
      work(4 * kWork);
      gate.set();
      co_await done;
      EXPECT_EQ(runtime.meter().running(), nullptr);
      EXPECT_GE(time.get()->time(), 3 * kWork);
      EXPECT_LE(time.get()->time(), Clock::now() - began - 4 * kWork);
    }),
              "");
  }
  EXPECT_EQ(alive, 0);
}

// It waits when the job ends: its frame holds the last share.
TEST(WorkMeter, ReleasesTheTimeOfACoroutineThatIsAbandoned) {
  int alive = 0;
  {
    weft::testing::InProcessJob job(1);
    EXPECT_EQ(job.run([&alive](Runtime& runtime) -> Task<> {
      WorkTimeShare time(new Time(alive));
      const WorkMeter::Span span(runtime.meter(), *time.get());
      runtime.spawn(work_twice(runtime, Future<>(runtime), Future<>(runtime)), "test");
      co_return;
    }),
              "");
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace weft::runtime
