#include "weft/base/status.h"

#include <gtest/gtest.h>

namespace weft::base {
namespace {

TEST(Status, OkIsNeitherPendingNorFailed) {
  Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(status.is_pending());
  EXPECT_FALSE(status.failed());
  EXPECT_EQ(status.to_string(), "ok");
}

TEST(Status, PendingIsNotAFailure) {
  Status status = Status::pending();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(status.is_pending());
  EXPECT_FALSE(status.failed());
  Status copy = status;
  EXPECT_TRUE(copy.is_pending());
}

TEST(Status, FailureKeepsItsMessageThroughCopiesAndMoves) {
  Status status(StatusCode::kTruncated, "8 bytes into 4");
  Status copy = status;
  Status moved = std::move(status);
  EXPECT_TRUE(copy.failed());
  EXPECT_EQ(copy.code(), StatusCode::kTruncated);
  EXPECT_EQ(moved.to_string(), "truncated: 8 bytes into 4");
  copy = Status();
  EXPECT_TRUE(copy.ok());
  EXPECT_EQ(moved.message(), "8 bytes into 4");
}

TEST(Status, CancelledIsAFailureLikeOthers) {
  Status status = Status::cancelled();
  Status copy = status;
  Status moved = std::move(status);
  EXPECT_TRUE(copy.failed() && moved.failed());
  EXPECT_EQ(moved.code(), StatusCode::kCancelled);
  EXPECT_EQ(copy.message(), moved.message());
  copy = Status(StatusCode::kClosed, "closed");
  EXPECT_EQ(copy.code(), StatusCode::kClosed);
}

TEST(Status, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(StatusCode::kInternal); ++code) {
    EXPECT_NE(status_code_name(static_cast<StatusCode>(code)), "unknown status") << code;
  }
}

TEST(Result, HoldsAValueOrSaysWhyNot) {
  Result<int> good = 7;
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(*good, 7);
  Result<int> bad = Status(StatusCode::kNotFound, "nothing there");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace weft::base
