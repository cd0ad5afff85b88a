#include "weft/base/error.h"

#include <gtest/gtest.h>

#include <string>

#include "base/refuse_claim.h"

namespace weft::base {
namespace {

TEST(Error, CheckThrowsOnlyForFailures) {
  EXPECT_NO_THROW(check(Status()));
  EXPECT_NO_THROW(check(Status::pending()));
  try {
    check(Status(StatusCode::kPeerFailed, "PE 3 is gone"));
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kPeerFailed);
    EXPECT_STREQ(error.what(), "PE 3 is gone");
  }
}

TEST(Error, ARefusedClaimIsCorruptAndSaysWhatToLookAt) {
  const auto refusal_of = [](auto... arguments) {
    try {
      refuse_claim(arguments...);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kCorrupt);
      return std::string(error.what());
    }
  };
  EXPECT_EQ(refusal_of("PE 3 sent a part twice"), "PE 3 sent a part twice; do all PEs run the same program?");
  EXPECT_EQ(refusal_of("a state has no end", "is the file damaged?"),
            "a state has no end; is the file damaged?");
}

TEST(Error, RemoteErrorShowsTypeMessageAndTraceback) {
  RemoteError error("std::out_of_range", "index 9", "  in Ring[3].work on PE 1\n");
  EXPECT_EQ(error.type(), "std::out_of_range");
  std::string what = error.what();
  EXPECT_NE(what.find("index 9"), std::string::npos);
  EXPECT_NE(what.find("Ring[3].work on PE 1"), std::string::npos);
  EXPECT_EQ(error.original(), "");
  EXPECT_EQ(RemoteError("KeyError", "'k'", "", "bytes").original(), "bytes");
}

}  // namespace
}  // namespace weft::base
