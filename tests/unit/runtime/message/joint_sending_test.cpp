#include "runtime/message/joint_sending.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using base::Status;
using base::StatusCode;

struct JointEnd : base::Completion {
  JointEnd()
      : Completion([](Completion* self, Status status, std::size_t size_bytes) {
          auto& end = *static_cast<JointEnd*>(self);
          ++end.calls;
          end.status = std::move(status);
          end.size_bytes = size_bytes;
        }) {}
  int calls = 0;
  Status status;
  std::size_t size_bytes = 0;
};

// Ends messages that share one sending with these, in order.
void end_parts(JointEnd& end, const std::vector<Status>& outcomes) {
  testing::InProcessJob job(1);
  const auto joint = std::make_shared<JointSending>(job.runtime(0), &end, 100);
  std::vector<std::shared_ptr<JointSending>> parts(outcomes.size(), joint);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(end.calls, 0);
    parts[i]->end_part(outcomes[i]);
    parts[i].reset();
  }
  EXPECT_EQ(end.calls, 0);  // `joint` has a share
}

TEST(JointSending, CompletesOnceWhenTheLastMessageIsSent) {
  JointEnd end;
  end_parts(end, {Status(), Status(), Status()});
  EXPECT_EQ(end.calls, 1);
  EXPECT_TRUE(end.status.ok());
  EXPECT_EQ(end.size_bytes, 100U);
}

TEST(JointSending, ReportsTheFirstFailure) {
  JointEnd end;
  end_parts(end, {Status(), Status(StatusCode::kPeerFailed, "first"), Status(StatusCode::kClosed, "second")});
  EXPECT_EQ(end.calls, 1);
  EXPECT_EQ(end.status.code(), StatusCode::kPeerFailed);
  EXPECT_EQ(end.status.message(), "first");
  EXPECT_EQ(end.size_bytes, 0U);
}

}  // namespace
}  // namespace weft::runtime
