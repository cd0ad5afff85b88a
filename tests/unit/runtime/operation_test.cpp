#include "weft/runtime/operation.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/joint_operation.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

TEST(Operation, DoneAtOnceNeedsNoWaiting) {
  testing::InProcessJob job(1);
  std::size_t moved = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto* state = OperationState::create(runtime);
    Operation operation(state);
    state->started(Status(), 5);
    EXPECT_TRUE(operation.is_done());
    moved = co_await operation;
  }),
            "");
  EXPECT_EQ(moved, 5u);
}

TEST(Operation, AwaitedFailureThrows) {
  testing::InProcessJob job(1);
  std::string message;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto* state = OperationState::create(runtime);
    Operation operation(state);
    state->started(Status::pending(), 0);
    runtime.sleep(0).then(
        [state](const Future<>&) { state->complete(Status(StatusCode::kTruncated, "8 into 4"), 8); });
    try {
      co_await operation;
    } catch (const Error& error) {
      message = error.what();
    }
  }),
            "");
  EXPECT_EQ(message, "8 into 4");
}

TEST(Operation, DroppedFailureEndsTheJob) {
  testing::InProcessJob job(1);
  std::string failure = job.run([&](Runtime& runtime) -> Task<> {
    auto* state = OperationState::create(runtime);
    Operation(state).detach();
    state->complete(Status(StatusCode::kPeerFailed, "PE 7 is gone"), 0);
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("PE 7 is gone"), std::string::npos) << failure;
}

TEST(Operation, AllOfIsOverWithTheLastAndHasTheFirstFailure) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    std::vector<OperationState*> states;
    std::vector<Operation> parts;
    for (int i = 0; i < 3; ++i) {
      states.push_back(OperationState::create(runtime));
      states.back()->started(Status::pending(), 0);
      parts.emplace_back(states.back());
    }
    Operation all = all_of(runtime, std::move(parts));
    states[1]->complete(Status(StatusCode::kPeerFailed, "the first"), 0);
    states[2]->complete(Status(StatusCode::kTruncated, "the second"), 0);
    for (int i = 0; i < 3; ++i) co_await yield_now(runtime);
    EXPECT_FALSE(all.is_done());
    states[0]->complete(Status(), 4);
    std::string failure;
    try {
      co_await all;
    } catch (const Error& error) {
      failure = error.what();
    }
    EXPECT_NE(failure.find("the first"), std::string::npos) << failure;
  }),
            "");
}

TEST(Operation, ASecondAwaitIsRefused) {
  testing::InProcessJob job(1);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto* state = OperationState::create(runtime);
    Operation operation(state);
    auto wait = [](Operation& shared) -> Task<> { co_await shared; };
    runtime.spawn(wait(operation), "the first");
    runtime.spawn(wait(operation), "the second");
    state->complete(Status(), 0);
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("awaited a second time"), std::string::npos) << failure;
}

TEST(Operation, CallbackAndFuture) {
  testing::InProcessJob job(1);
  std::size_t from_callback = 0;
  std::size_t from_future = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto* first = OperationState::create(runtime);
    Operation(first).then([&](const Status& status, std::size_t size_bytes) {
      if (status.ok()) from_callback = size_bytes;
    });
    first->complete(Status(), 3);
    auto* second = OperationState::create(runtime);
    Future<std::size_t> future = Operation(second).as_future();
    second->complete(Status(), 4);
    from_future = co_await future;
  }),
            "");
  EXPECT_EQ(from_callback, 3u);
  EXPECT_EQ(from_future, 4u);
}

}  // namespace
}  // namespace weft::runtime
