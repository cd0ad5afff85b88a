// Failures of operations in jobs that outlive losses, before and without the launcher's word.
#include "runtime/losses/losses.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

class LossesOfJob : public ::testing::Test {
 protected:
  // An operation of PE 0 with `pe` fails.
  bool fail_with(int pe) {
    return job_.runtime(0).losses().explain(pe, {base::StatusCode::kPeerFailed, "a put failed"});
  }
  std::string failure_after_turns() {
    int turns = 0;
    return job_.run_until([&] { return ++turns > 100; });
  }
  std::string failure_within(std::chrono::duration<double> time) {
    const auto end = std::chrono::steady_clock::now() + time;
    int turns = 0;  // after the end
    return job_.run_until([&] { return std::chrono::steady_clock::now() > end && ++turns > 100; });
  }
  void be_impatient() { job_.runtime(0).losses().set_patience_s(0); }

  testing::InProcessJob job_ = testing::InProcessJob::outliving_losses(3);
};

TEST_F(LossesOfJob, AFailureWithoutALossEndsTheJob) {
  be_impatient();
  EXPECT_TRUE(fail_with(1));
  const std::string failure = failure_after_turns();
  EXPECT_NE(failure.find("told of no loss of its peer"), std::string::npos) << failure;
  EXPECT_NE(failure.find("a put failed"), std::string::npos) << failure;
}

TEST_F(LossesOfJob, AFailureWithAPeerThatIsNotKnownEndsTheJobToo) {
  be_impatient();
  EXPECT_TRUE(fail_with(-1));
  EXPECT_NE(failure_after_turns(), "");
}

TEST_F(LossesOfJob, TheLossOfAnotherPeDoesNotExplainAFailure) {
  be_impatient();
  EXPECT_TRUE(fail_with(1));
  job_.lose(2);
  EXPECT_NE(failure_after_turns(), "");
}

TEST_F(LossesOfJob, AFailureWhoseLossIsToldInTimeIsExplained) {
  job_.runtime(0).losses().set_patience_s(0.02);
  EXPECT_TRUE(fail_with(1));
  EXPECT_TRUE(fail_with(-1));
  job_.lose(1);
  EXPECT_EQ(failure_within(std::chrono::duration<double>(0.03)), "");
  be_impatient();
  EXPECT_TRUE(fail_with(1));
  EXPECT_EQ(failure_after_turns(), "");
}

TEST_F(LossesOfJob, OnlyARecentLossExplainsAFailureWithAPeerThatIsNotKnown) {
  job_.lose(1);
  EXPECT_EQ(failure_after_turns(), "");
  EXPECT_TRUE(fail_with(-1));  // explained: else it would be awaited, and the next one not
  be_impatient();
  EXPECT_TRUE(fail_with(-1));
  EXPECT_NE(failure_after_turns(), "");
}

TEST_F(LossesOfJob, OtherFailuresAreNotExplained) {
  EXPECT_FALSE(job_.runtime(0).losses().explain(1, {base::StatusCode::kInternal, "a put failed"}));
  testing::InProcessJob other(2);
  EXPECT_FALSE(other.runtime(0).losses().explain(1, {base::StatusCode::kPeerFailed, "a put failed"}));
}

// Only an observer must see each message.
TEST(LossesAndDirectMessages, DirectMessagesGoToPesThatAreNotLost) {
  constexpr HandlerId kDirectHandler = 250;
  testing::InProcessJob job(3, "ucx", {}, machine::StagingMode::kDevice, -1, memory::kDeviceTimeout, true);
  for (const int pe : {1, 2}) {
    job.runtime(pe).set_urgent_handler(kDirectHandler, [](void*, MessagePtr) {}, nullptr);
    job.runtime(pe).set_direct_handler(kDirectHandler, [](void*, const DirectArrival&) { return false; });
  }
  const auto goes_directly_to = [&](int pe) {
    return job.runtime(0).send_direct(pe, kDirectHandler, std::uint64_t{1}, {});
  };
  EXPECT_TRUE(goes_directly_to(2));
  job.lose(1);  // without a connection to it, which UCX would leak
  ASSERT_EQ(job.run_until([&] { return job.runtime(0).losses().is_lost(1); }), "");
  EXPECT_FALSE(goes_directly_to(1));
  EXPECT_TRUE(goes_directly_to(2));
  EXPECT_FALSE(goes_directly_to(3));
  Observer observer;
  job.runtime(0).set_observer(&observer);
  EXPECT_FALSE(goes_directly_to(2));
  job.runtime(0).set_observer(nullptr);
}

}  // namespace
}  // namespace weft::runtime
