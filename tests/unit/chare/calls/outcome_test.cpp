#include "weft/chare/outcome.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct GiveWhenSent : ::testing::Test {
  GiveWhenSent() {
    sending->started(base::Status::pending(), 0);
    delay_until_sent(*result.state(), sending);
  }
  // Gives what is queued its turn.
  void turn() {
    for (int i = 0; i < 10; ++i) job.runtime(0).step();
  }
  std::string failure() {
    try {
      static_cast<void>(result.get());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  testing::InProcessJob job{1};
  Future<int> result{job.runtime(0)};
  runtime::OperationState* sending = runtime::OperationState::create(job.runtime(0));
};

TEST_F(GiveWhenSent, AResultWaitsForTheSend) {
  result.set(3);
  turn();
  EXPECT_FALSE(result.is_ready());
  EXPECT_THROW(result.set(4), Error);  // it is set, though not ready
  sending->complete({}, 10);
  turn();
  ASSERT_TRUE(result.is_ready());
  EXPECT_EQ(result.get(), 3);
}

TEST_F(GiveWhenSent, ASendWaitsForTheResult) {
  sending->complete({}, 10);
  turn();
  EXPECT_FALSE(result.is_ready());
  result.set(3);
  ASSERT_TRUE(result.is_ready());
  EXPECT_EQ(result.get(), 3);
}

TEST_F(GiveWhenSent, AnErrorWaitsToo) {
  result.set_error(std::make_exception_ptr(Error(base::StatusCode::kInvalidArgument, "refused")));
  turn();
  EXPECT_FALSE(result.is_ready());
  sending->complete({}, 10);
  turn();
  ASSERT_TRUE(result.is_ready());
  EXPECT_EQ(failure(), "refused");
}

TEST_F(GiveWhenSent, AFailedSendIsTheResult) {
  sending->complete({base::StatusCode::kPeerFailed, "PE 7 is gone"}, 0);
  turn();
  ASSERT_TRUE(result.is_ready());
  EXPECT_EQ(failure(), "PE 7 is gone");
}

TEST_F(GiveWhenSent, AFailedSendReplacesAResult) {
  result.set(3);
  sending->complete({base::StatusCode::kPeerFailed, "PE 7 is gone"}, 0);
  turn();
  ASSERT_TRUE(result.is_ready());
  EXPECT_EQ(failure(), "PE 7 is gone");
}

TEST_F(GiveWhenSent, AResultThatNobodyHoldsIsFreed) {
  result = Future<int>(job.runtime(0));
  sending->complete({}, 10);
  turn();
}

struct Named : Chare<Named> {
  const std::string name() { return "constant"; }
};

TEST(Outcome, AMethodMayReturnAConstantValue) {
  EXPECT_EQ(testing::InProcessJob(2).run([](Runtime& runtime) -> Task<> {
    const auto named = Array<Named>::create(runtime, 2);
    for (int i = 0; i < 2; ++i) {
      const std::string name = co_await named[i].call<&Named::name>();
      EXPECT_EQ(name, "constant");
    }
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
