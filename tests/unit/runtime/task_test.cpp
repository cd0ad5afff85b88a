#include "weft/runtime/task.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <utility>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

Task<int> answer() { co_return 42; }
Task<int> add_one(Task<int> inner) { co_return co_await std::move(inner) + 1; }
Task<> thrower() {
  throw std::logic_error("deep down");
  co_return;
}

TEST(Task, ValuesComeThroughNestedTasks) {
  testing::InProcessJob job(1);
  int result = 0;
  std::string failure =
      job.run([&result](Runtime&) -> Task<> { result = co_await add_one(add_one(answer())); });
  EXPECT_EQ(failure, "");
  EXPECT_EQ(result, 44);
}

TEST(Task, ExceptionsReachTheAwaiter) {
  testing::InProcessJob job(1);
  bool caught = false;
  std::string failure = job.run([&caught](Runtime&) -> Task<> {
    try {
      co_await thrower();
    } catch (const std::logic_error& error) {
      caught = std::string(error.what()) == "deep down";
    }
  });
  EXPECT_EQ(failure, "");
  EXPECT_TRUE(caught);
}

TEST(Task, AnExceptionThatNobodyAwaitsEndsTheJobAndNamesIt) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime&) -> Task<> { co_await thrower(); });
  EXPECT_NE(failure.find("main on PE 0"), std::string::npos) << failure;
  EXPECT_NE(failure.find("deep down"), std::string::npos) << failure;
}

TEST(Task, LongChainsOfAwaitsDoNotGrowTheStack) {
  testing::InProcessJob job(1);
  int sum = 0;
  std::string failure = job.run([&sum](Runtime& runtime) -> Task<> {
    for (int i = 0; i < 100000; ++i) {
      Future<int> ready = runtime.make_future<int>();
      ready.set(1);
      sum += co_await ready;
    }
  });
  EXPECT_EQ(failure, "");
  EXPECT_EQ(sum, 100000);
}

struct CountsItsEnd {
  explicit CountsItsEnd(int* count_in) : count(count_in) {}
  ~CountsItsEnd() { ++*count; }
  int* count;
};

TEST(Task, SuspendedCoroutinesAreDestroyedWithTheRuntime) {
  int ended = 0;
  {
    testing::InProcessJob job(1);
    auto never = [](Runtime& runtime, int* count) -> Task<> {
      CountsItsEnd guard(count);
      co_await runtime.make_future<>();
    };
    for (int i = 0; i < 3; ++i) job.runtime(0).spawn(never(job.runtime(0), &ended), "waits for ever");
    EXPECT_EQ(job.run([](Runtime&) -> Task<> { co_return; }), "");
    EXPECT_EQ(ended, 0);
  }
  EXPECT_EQ(ended, 3);
}

// What a frame's destructor sets is awaited by frames that are destroyed after it, or waited for by an operation.
struct SetsAtItsEnd {
  explicit SetsAtItsEnd(std::function<void()> set_in) : set(std::move(set_in)) {}
  ~SetsAtItsEnd() { set(); }
  std::function<void()> set;
};

Task<> hold_until_closed(Future<> never, std::function<void()> set) {
  SetsAtItsEnd guard(std::move(set));
  co_await never;
}

Task<> wait_for(Future<> future, bool& resumed) {
  co_await future;
  resumed = true;
}

TEST(Task, AFutureThatADestroyedFrameSetsResumesNoDestroyedFrame) {
  bool resumed = false;
  bool called = false;
  {
    testing::InProcessJob job(1);
    Runtime& runtime = job.runtime(0);
    Future<> future(runtime);
    Future<> never(runtime);
    // Frames are destroyed in any order: some wait before, some behind the one that sets.
    for (int i = 0; i < 2; ++i) runtime.spawn(wait_for(future, resumed), "a waiter");
    future.then([&](Future<>) { called = true; });
    runtime.spawn(hold_until_closed(never, [future] { future.set(); }), "a holder");
    for (int i = 0; i < 2; ++i) runtime.spawn(wait_for(future, resumed), "a waiter");
    runtime.close();
  }
  EXPECT_FALSE(resumed);
  EXPECT_FALSE(called);
}

Task<> wait_for_operation(OperationState* state, bool& resumed) {
  co_await Operation(state);
  resumed = true;
}

TEST(Task, AnOperationThatEndsAfterItsFrameResumesNothing) {
  bool resumed = false;
  {
    testing::InProcessJob job(1);
    Runtime& runtime = job.runtime(0);
    auto* state = OperationState::create(runtime);
    state->started(Status::pending(), 0);
    runtime.spawn(wait_for_operation(state, resumed), "a waiter");
    runtime.close();
    state->complete({}, 0);  // as a model does that ends what it keeps
  }
  EXPECT_FALSE(resumed);
}

}  // namespace
}  // namespace weft::runtime
