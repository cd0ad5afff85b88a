#include "machine/bootstrap/launcher_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "machine/bootstrap/local.h"
#include "machine/bootstrap/singleton.h"
#include "tests/unit/bootstrap/socket_pair.h"

namespace weft::machine {
namespace {

using bootstrap::FrameType;
using bootstrap::LocalBootstrap;
using bootstrap::SocketPair;

class LauncherWatchTest : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::byte> one_pe(4);
    bootstrap::set_integer(one_pe, 0, std::uint32_t{1});
    ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kWelcome, one_pe).ok());
    bootstrap::LocalSettings settings;
    settings.num_pes = 1;
    settings.launcher_pid = 4711;
    auto joined = LocalBootstrap::join(launcher_.give_theirs(), settings);
    ASSERT_TRUE(joined.ok()) << joined.status().to_string();
    bootstrap_ = std::move(joined).value();
  }

  SocketPair launcher_;
  std::unique_ptr<Bootstrap> bootstrap_;
};

TEST_F(LauncherWatchTest, NothingHappensWhileTheLauncherIsQuiet) {
  std::atomic<int> words = 0;
  {
    LauncherWatch watch(*bootstrap_, [&] { ++words; });
  }
  EXPECT_EQ(words, 0);
}

TEST_F(LauncherWatchTest, TheLaunchersEndIsTold) {
  std::promise<void> told;
  LauncherWatch watch(*bootstrap_, [&] { told.set_value(); });
  launcher_.close_ours();
  told.get_future().wait();
  EXPECT_EQ(bootstrap_->watch_status().code(), base::StatusCode::kPeerFailed);
}

TEST_F(LauncherWatchTest, TheEndOfTheJobIsTold) {
  std::promise<void> told;
  LauncherWatch watch(*bootstrap_, [&] { told.set_value(); });
  ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kEnd, {}).ok());
  told.get_future().wait();
  EXPECT_EQ(bootstrap_->watch_status().code(), base::StatusCode::kCancelled);
  // The launcher knows; nobody waits for an answer to this, or prints it.
  testing::internal::CaptureStderr();
  bootstrap_->abort(1, "too late to be news");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(LauncherWatchTest, ABusyPeIsEnded) {
  EXPECT_EXIT(
      {
        LauncherWatch watch(*bootstrap_, [] {});
        if (write_frame(launcher_.ours(), FrameType::kEnd, {}).failed()) std::abort();
        for (volatile bool busy = true; busy;) {
        }
      },
      testing::ExitedWithCode(1), "weft: PE 0 ends although it is busy");
}

TEST(LauncherWatchAloneTest, WithoutALauncherThereIsNothingToWatch) {
  bootstrap::SingletonBootstrap alone;
  LauncherWatch watch(alone, [] { FAIL(); });
}

}  // namespace
}  // namespace weft::machine
