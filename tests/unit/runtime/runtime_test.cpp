#include "weft/runtime/runtime.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "tests/support/busy_stream.h"
#include "tests/support/device_memory.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

constexpr HandlerId kOwnHandler = kNumHandlers - 1;

// Records what reaches the handler on each PE.
struct Received {
  explicit Received(testing::InProcessJob& job) : payloads(static_cast<std::size_t>(job.num_pes())) {
    for (int pe = 0; pe < job.num_pes(); ++pe) {
      job.runtime(pe).set_handler(
          kOwnHandler,
          [](void* context, MessagePtr message) {
            auto& list = *static_cast<std::vector<std::vector<std::byte>>*>(context);
            list.emplace_back(message->payload_span().begin(), message->payload_span().end());
          },
          &payloads[static_cast<std::size_t>(pe)]);
    }
  }
  std::vector<std::vector<std::vector<std::byte>>> payloads;
};

TEST(Runtime, MessagesOfAllSizesArriveWhole) {
  for (std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{8}, std::size_t{5000}, std::size_t{1} << 20}) {
    testing::InProcessJob job(2);
    Received received(job);
    std::vector<std::byte> sent(size);
    for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 7);
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      for (int to : {0, 1}) {
        MessagePtr message = Message::create(runtime, kOwnHandler, size);
        std::copy(sent.begin(), sent.end(), message->payload());
        runtime.send(to, std::move(message));
      }
      co_await runtime.quiescence();
    }),
              "");
    ASSERT_EQ(received.payloads[0].size(), 1u) << size;
    ASSERT_EQ(received.payloads[1].size(), 1u) << size;
    EXPECT_EQ(received.payloads[0][0], sent);
    EXPECT_EQ(received.payloads[1][0], sent);
  }
}

TEST(Runtime, BroadcastReachesEveryPeOnceFromAnyRoot) {
  testing::InProcessJob job(11);
  Received received(job);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    job.runtime(0).broadcast(Message::pack(job.runtime(0), kOwnHandler, 1));
    job.runtime(5).broadcast(Message::pack(job.runtime(5), kOwnHandler, 2));
    co_await runtime.quiescence();
  }),
            "");
  for (auto& payloads : received.payloads) EXPECT_EQ(payloads.size(), 2u);
}

TEST(Runtime, ExitCodeReachesEveryPe) {
  testing::InProcessJob job(6);
  job.runtime(4).exit(3);
  EXPECT_EQ(job.run_until([&] {
    for (int pe = 0; pe < 6; ++pe) {
      if (!job.runtime(pe).stopped()) return false;
    }
    return true;
  }),
            "");
  for (int pe = 0; pe < 6; ++pe) EXPECT_EQ(job.runtime(pe).run(), 3) << pe;
}

TEST(Runtime, UserWorkIsDroppedOnceTheJobEnds) {
  testing::InProcessJob job(2);
  Received received(job);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    runtime.exit(0);
    co_await runtime.sleep(0);
    ADD_FAILURE() << "resumed after the end";
  }),
            "");
}

TEST(Runtime, SendingToAPeThatDoesNotExistSaysSo) {
  testing::InProcessJob job(2);
  try {
    job.runtime(0).send(2, Message::pack(job.runtime(0), kOwnHandler, 1));
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "PE 2 does not exist; this job has PEs 0 to 1");
  }
}

TEST(Runtime, AMessageForAHandlerThatIsNotThereIsRefused) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    runtime.send(1, Message::pack(runtime, kNumHandlers + 100, 1));
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("do all PEs run the same program"), std::string::npos) << failure;
}

TEST(Runtime, BytesThatDoNotUnpackEndTheJob) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    runtime.send(1, Message::create(runtime, kFutureSetHandler, 3));
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("from PE 0"), std::string::npos) << failure;
}

TEST(Runtime, OtherThreadsPostWork) {
  testing::InProcessJob job(1);
  std::thread::id ran_on;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    Future<> done(runtime);
    std::thread other([&] {
      runtime.post_from_any_thread([&] {
        ran_on = std::this_thread::get_id();
        done.set();
      });
    });
    co_await done;
    other.join();
  }),
            "");
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Runtime, ASleepingPeIsWokenByAnotherThread) {
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  Future<> done(runtime);
  done.then([&](const Future<>&) { runtime.exit(9); });
  std::thread other([&] { runtime.post_from_any_thread([&] { done.set(); }); });
  EXPECT_EQ(runtime.run(), 9);  // goes to sleep until the post comes
  other.join();
}

TEST(Runtime, OneWakeUpServesAllThatIsPostedBeforeIt) {
  static constexpr int num_threads = 4;
  static constexpr int num_posts = 500;
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  int num_run = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < num_threads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < num_posts; ++i) {
        // A thread waits for some of its posts, so that the PE sleeps now and then and must be woken.
        const auto has_run = std::make_shared<std::binary_semaphore>(0);
        runtime.post_from_any_thread([&runtime, &num_run, has_run] {
          if (++num_run == num_threads * num_posts) runtime.exit(9);
          has_run->release();
        });
        if (i % 50 == 0) has_run->acquire();
      }
    });
  }
  EXPECT_EQ(runtime.run(), 9);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_run, num_threads * num_posts);
}

TEST(Runtime, WhatAnotherThreadPostedTooLateGoesWithTheJob) {
  auto held = std::make_shared<int>();
  testing::InProcessJob job(1);
  Runtime& runtime = job.runtime(0);
  EXPECT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
  bool was_called = false;
  std::thread([&] { runtime.post_from_any_thread([&was_called, held] { was_called = true; }); }).join();
  EXPECT_EQ(held.use_count(), 2);
  runtime.close();
  EXPECT_EQ(held.use_count(), 1) << "it may hold what the runtime is held by";
  EXPECT_FALSE(was_called);
}

struct Interrupting : IdleHook {
  explicit Interrupting(Runtime& runtime_in) : runtime(runtime_in) {}
  void before_sleep() override { runtime.machine().wake(); }
  bool after_sleep() override { return false; }
  Runtime& runtime;
};

TEST(Runtime, AnIdleHookCanInterrupt) {
  testing::InProcessJob job(1);
  Interrupting hook(job.runtime(0));
  job.runtime(0).set_idle_hook(&hook);
  EXPECT_EQ(job.runtime(0).run(), 1);
  EXPECT_EQ(job.runtime(0).failure(), "interrupted");
}

// If it slept at once each time, it would sleep for ever. On a busy machine it may do so once: then the timer wakes it.
TEST(Runtime, APeWithAProcessorOfItsOwnStaysAwakeForAWhile) {
  struct Counting : IdleHook {
    void before_sleep() override {}
    void yield() override {}  // takes no time: no other thread wants the processor
    bool after_sleep() override { return ++calls < 3; }
    int calls = 0;
  };
  testing::InProcessJob job(2);
  Counting hook;
  job.runtime(0).set_idle_hook(&hook);
  struct Nothing final : Work {
    Nothing() : Work([](Work*, Runtime&, WorkAction) {}) {}
  } nothing;
  job.runtime(0).post_after(5, &nothing);
  EXPECT_EQ(job.runtime(0).run(), 1);
  job.runtime(0).set_idle_hook(nullptr);
  EXPECT_EQ(hook.calls, 3) << "other threads of the process may run";
}

// Each yield takes as long as if threads that compute had the processor meanwhile: so long that yields are expected to take long for the
// rest of a test, also if it waits for its core.
struct WantedProcessor : IdleHook {
  void before_sleep() override {}
  bool after_sleep() override { return false; }
  void yield() override {
    ++num_yields;
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (std::chrono::steady_clock::now() < end) continue;
  }
  void wait(machine::Machine& /*machine*/, std::int64_t timeout_us) override {
    ++num_waits;
    longest_wait_us = timeout_us;
  }
  int num_yields = 0;
  int num_waits = 0;
  std::int64_t longest_wait_us = 0;
};

TEST(Runtime, APeWhoseProcessorIsWantedSleepsAtOnce) {
  testing::InProcessJob job(2);
  WantedProcessor hook;
  job.runtime(0).set_idle_hook(&hook);
  EXPECT_EQ(job.runtime(0).run(), 1);  // the hook interrupts it
  job.runtime(0).set_idle_hook(nullptr);
  EXPECT_EQ(hook.num_yields, 1);
  EXPECT_EQ(hook.num_waits, 1);
  EXPECT_EQ(hook.longest_wait_us, -1);
}

TEST(Runtime, PollsThatDoNothingLeaveTheProcessorToOthers) {
  constexpr int kPolls = 64 * 3;
  testing::InProcessJob job(2);
  WantedProcessor hook;
  Runtime& runtime = job.runtime(0);
  runtime.set_idle_hook(&hook);
  struct Nothing final : Work {
    Nothing() : Work([](Work*, Runtime&, WorkAction) {}) {}
  } nothing;
  for (int i = 0; i < kPolls; ++i) {
    if (i % 32 == 0) runtime.post(&nothing);
    runtime.poll();
  }
  EXPECT_EQ(hook.num_yields, 0) << "they have done something in between";
  for (int i = 0; i < kPolls; ++i) runtime.poll();
  EXPECT_EQ(hook.num_yields, 1);
  EXPECT_GT(hook.num_waits, 2) << "as a yield takes long";
  EXPECT_GT(hook.longest_wait_us, 0);
  EXPECT_LE(hook.longest_wait_us, 1000);
  const bool never = false;  // the end of work on a device ends no wait in the machine
  const memory::StreamHandle stream =
      testing::stream_with(testing::emulated(job.memory(0)), 0, testing::until(never));
  struct Ignored : base::Completion {
    Ignored() : base::Completion([](base::Completion*, base::Status, std::size_t) {}) {}
  } done;
  ASSERT_TRUE(job.memory(0).when_stream_done({memory::Kind::kEmulated, 0}, stream, &done).is_pending());
  hook.num_waits = hook.num_yields = 0;
  for (int i = 0; i < kPolls; ++i) runtime.poll();
  EXPECT_EQ(hook.num_waits, 0);
  EXPECT_GT(hook.num_yields, 0);
  runtime.set_idle_hook(nullptr);
}

TEST(Runtime, AnIdleHookIsCalledWhileADeviceIsPolled) {
  testing::InProcessJob job(1);
  Interrupting hook(job.runtime(0));
  job.runtime(0).set_idle_hook(&hook);
  const bool never = false;
  const memory::StreamHandle stream =
      testing::stream_with(testing::emulated(job.memory(0)), 0, testing::until(never));
  struct Ignored : base::Completion {
    Ignored() : base::Completion([](base::Completion*, base::Status, std::size_t) {}) {}
  } done;
  ASSERT_TRUE(job.memory(0).when_stream_done({memory::Kind::kEmulated, 0}, stream, &done).is_pending());
  EXPECT_EQ(job.runtime(0).run(), 1);
  EXPECT_EQ(job.runtime(0).failure(), "interrupted");
}

}  // namespace
}  // namespace weft::runtime
