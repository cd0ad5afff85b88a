// How work takes turns: yield_now, forced turns of coroutines whose awaits are all ready, progress() from
// inside an entry method, and failures that another thread reports.
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

// Counts turns: mail is read once in each.
struct TurnCounter {
  explicit TurnCounter(Runtime& runtime_in) : runtime(runtime_in) { post(); }
  void post() {
    runtime.post_from_any_thread([this] {
      ++turns;
      post();
    });
  }
  Runtime& runtime;
  int turns = 0;
};

struct Stopper : Chare<Stopper> {
  static inline bool stopped = false;
  Stopper() { stopped = false; }
  void stop() { stopped = true; }
  void stop_on(int pe) { proxy()[pe].send<&Stopper::stop>(); }
};

// Fails the job from another thread, at the last moment before the PE sleeps.
struct FailingThread : IdleHook {
  explicit FailingThread(Runtime& runtime_in) : runtime(runtime_in) {}
  void before_sleep() override {
    std::thread([this] { runtime.fail("said by another thread"); }).join();
    failed_before_the_sleep = !runtime.failure().empty();
  }
  bool after_sleep() override { return true; }
  Runtime& runtime;
  bool failed_before_the_sleep = false;
};

TEST(Turns, ATimerThatIsTakenBackDoesNotRing) {
  struct Ring final : Work {
    Ring() : Work(&Ring::turn) {}
    static void turn(Work* self, Runtime&, WorkAction) { ++static_cast<Ring*>(self)->rung; }
    int rung = 0;
  };
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  Ring early;
  Ring late;
  const Scheduler::TimerId first = runtime.post_after(0, &early);
  const Scheduler::TimerId second = runtime.post_after(3600, &late);
  EXPECT_TRUE(runtime.cancel_timer(second));
  EXPECT_FALSE(runtime.cancel_timer(second));
  while (early.rung == 0) runtime.step();
  EXPECT_FALSE(runtime.cancel_timer(first)) << "its time has passed";
  EXPECT_EQ(early.rung, 1);
  EXPECT_EQ(late.rung, 0);
}

TEST(Turns, AFailureOnAnotherThreadWakesASleepingPe) {
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  FailingThread hook(runtime);
  runtime.set_idle_hook(&hook);
  EXPECT_EQ(runtime.run(), 1);  // without the wake-up it sleeps for ever
  EXPECT_EQ(runtime.failure(), "said by another thread");
  EXPECT_FALSE(hook.failed_before_the_sleep) << "the PE's thread alone changes its state";
  runtime.set_idle_hook(nullptr);
}

// PE 1 never takes a turn, as a PE that has died: PE 0 awaits its report.
TEST(Turns, AFailureOnAnotherThreadStopsAPeWhoseJobEnds) {
  testing::InProcessJob job(2);
  Runtime& runtime = job.runtime(0);
  bool has_read_mail = false;
  runtime.exit(0);
  runtime.step();
  ASSERT_TRUE(runtime.exiting());
  ASSERT_FALSE(runtime.stopped());
  std::thread([&] {
    runtime.post_from_any_thread([&] { has_read_mail = true; });
    runtime.fail("PE 1 has died");
  }).join();
  runtime.step();
  ASSERT_TRUE(runtime.stopped());
  EXPECT_EQ(runtime.run(), 1);
  EXPECT_EQ(runtime.failure(), "PE 1 has died");
  EXPECT_FALSE(has_read_mail) << "work of other threads is dropped while the job ends";
}

// As calls wait that flow control holds back. The hook is called there as well.
TEST(Turns, AFailureOnAnotherThreadEndsAWaitInsideACall) {
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  struct Hook final : FailingThread {
    using FailingThread::FailingThread;
    bool after_sleep() override {
      may_progress |= runtime.may_progress();
      return true;
    }
    bool may_progress = false;
  } hook(runtime);
  runtime.set_idle_hook(&hook);
  bool ended = false;
  runtime.spawn(
      [](Runtime& self, bool& ended_in) -> Task<> {
        self.progress_until([](void*) { return false; }, nullptr);
        ended_in = true;
        co_return;
      }(runtime, ended),
      "a call that waits");
  EXPECT_EQ(runtime.run(), 1);
  EXPECT_TRUE(ended);
  EXPECT_FALSE(hook.may_progress) << "a call of a signal handler would wait inside the wait";
  EXPECT_EQ(runtime.failure(), "said by another thread");
  runtime.set_idle_hook(nullptr);
}

// Ends the wait when the PE is about to sleep, and looks at what its meter says then.
struct IdleLook final : IdleHook, TurnMeter::Listener {
  explicit IdleLook(Runtime& runtime_in) : runtime(runtime_in) {
    runtime.set_idle_hook(this);
    runtime.turn_meter().set_listener(this);
  }
  ~IdleLook() override {
    runtime.turn_meter().set_listener(nullptr);
    runtime.set_idle_hook(nullptr);
  }
  void before_sleep() override {
    was_idle = runtime.turn_meter().is_idle();
    is_over = true;
  }
  bool after_sleep() override { return true; }
  void wait(machine::Machine& /*machine*/, std::int64_t /*timeout_us*/) override {}
  void times_changed(const TurnMeter::Times& times) override { last = times; }
  void publish(const TurnMeter::Times& times) override { last = times; }
  static bool is_done(void* look) { return static_cast<IdleLook*>(look)->is_over; }

  Runtime& runtime;
  bool is_over = false;
  bool was_idle = false;
  TurnMeter::Times last;
};

TEST(Turns, AWaitOutsideOfTheSchedulerIsIdleUntilItReturns) {
  testing::InProcessJob job(1);
  IdleLook look(job.runtime(0));
  EXPECT_TRUE(job.runtime(0).run_until(&IdleLook::is_done, &look));
  EXPECT_TRUE(look.was_idle);
  EXPECT_FALSE(job.runtime(0).turn_meter().is_idle()) << "the program goes on";
  EXPECT_EQ(look.last.idle_since, TurnMeter::Clock::time_point{});
  EXPECT_GT(look.last.idle.count(), 0);
}

TEST(Turns, AWaitInsideACallIsIdleUntilItReturns) {
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  IdleLook look(runtime);
  runtime.spawn(
      [](Runtime& self, IdleLook& look_in) -> Task<> {
        self.progress_until(&IdleLook::is_done, &look_in);
        EXPECT_FALSE(self.turn_meter().is_idle());
        self.exit(0);
        co_return;
      }(runtime, look),
      "a call that waits");
  EXPECT_EQ(runtime.run(), 0);
  EXPECT_TRUE(look.was_idle);
}

TEST(Turns, AnUrgentQuestionIsAnsweredInsideACall) {
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  bool is_answered = false;
  runtime.set_urgent_function([&] { is_answered = true; });
  runtime.spawn(
      [](Runtime& self, bool& is_answered_in) -> Task<> {
        std::thread asker([&] { self.ask_urgently(); });
        self.progress_until([](void* answered) { return *static_cast<bool*>(answered); }, &is_answered_in);
        asker.join();
        self.exit(0);
        co_return;
      }(runtime, is_answered),
      "a call that waits");
  EXPECT_EQ(runtime.run(), 0);
  EXPECT_TRUE(is_answered);
}

TEST(Turns, ACoroutineWhoseFutureIsAlwaysReadyLeavesTurnsToOthers) {
  testing::InProcessJob job(2);
  int awaits = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto stoppers = Group<Stopper>::create(runtime);
    Future<> ready(runtime);
    ready.set();
    stoppers[1].send<&Stopper::stop_on>(0);
    for (awaits = 0; awaits < 1'000'000 && !Stopper::stopped; ++awaits) co_await ready;
  }),
            "");
  EXPECT_TRUE(Stopper::stopped) << "the call that was to stop the loop did not run in it";
}

TEST(Turns, ACoroutineWhoseOperationsAreAlwaysDoneLeavesTurnsToOthers) {
  testing::InProcessJob job(1);
  TurnCounter counter(job.runtime(0));
  constexpr int kAwaits = 100 * Runtime::kReadyAwaitsPerTurn;
  EXPECT_EQ(job.run([](Runtime& rt) -> Task<> {
    for (int i = 0; i < kAwaits; ++i) {
      OperationState* state = OperationState::create(rt);
      state->started({}, 5);
      Operation done(state);
      EXPECT_TRUE(done.is_done());
      const std::size_t size_bytes = co_await done;
      EXPECT_EQ(size_bytes, 5u);
    }
  }),
            "");
  EXPECT_GE(counter.turns, 100);
  EXPECT_LE(counter.turns, 300) << "a turn for each await would be slow";
}

TEST(Turns, YieldNowLetsTheQueueAndTheNetworkHaveTheirTurn) {
  testing::InProcessJob job(1);
  TurnCounter counter(job.runtime(0));
  std::vector<int> order;
  EXPECT_EQ(job.run([&](Runtime& rt) -> Task<> {
    Future<> first(rt);
    first.then([&](const Future<>&) { order.push_back(1); });
    first.set();
    co_await yield_now(rt);
    order.push_back(2);
    const int before = counter.turns;
    for (int i = 0; i < 10; ++i) co_await yield_now(rt);
    EXPECT_EQ(counter.turns, before + 10) << "one poll of the network each";
  }),
            "");
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(Turns, AJobThatEndsDoesNotResumeWhatHasYielded) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    runtime.exit(0);
    for (;;) co_await yield_now(runtime);
  }),
            "");
}

TEST(Turns, ProgressBringsMessagesInAndRunsNoHandler) {
  constexpr HandlerId kHandler = kNumHandlers - 1;
  testing::InProcessJob job(2);
  int handled = 0;
  job.runtime(0).set_handler(
      kHandler, [](void* context, MessagePtr) { ++*static_cast<int*>(context); }, &handled);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    co_await yield_now(runtime);
    EXPECT_FALSE(runtime.progress());
    job.runtime(1).send(0, Message::pack(job.runtime(1), kHandler, 1));
    int polls = 0;
    while (!runtime.progress() && polls < 1000) ++polls;
    EXPECT_LT(polls, 1000) << "the message did not arrive";
    EXPECT_EQ(handled, 0);
    co_await yield_now(runtime);
    EXPECT_EQ(handled, 1);
  }),
            "");
}

TEST(Turns, ProgressOutsideOfATurnDoesNothing) {
  constexpr HandlerId kHandler = kNumHandlers - 1;
  testing::InProcessJob job(2);
  int handled = 0;
  job.runtime(0).set_handler(
      kHandler, [](void* context, MessagePtr) { ++*static_cast<int*>(context); }, &handled);
  job.runtime(1).send(0, Message::pack(job.runtime(1), kHandler, 1));
  EXPECT_FALSE(job.runtime(0).progress());
  while (handled == 0) job.runtime(0).step();
}

}  // namespace
}  // namespace weft::runtime
