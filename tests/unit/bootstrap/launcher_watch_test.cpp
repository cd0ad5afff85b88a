#include "machine/bootstrap/launcher/launcher_watch.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <string>

#include "base/format.h"
#include "machine/bootstrap/launcher/local.h"
#include "machine/bootstrap/singleton.h"
#include "tests/unit/bootstrap/socket_pair.h"

namespace weft::machine {
namespace {

using bootstrap::FrameType;
using bootstrap::LocalBootstrap;
using bootstrap::SocketPair;

class LauncherWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::byte> one_pe(4);
    bootstrap::set_integer(one_pe, 0, std::uint32_t{1});
    ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kWelcome, one_pe).ok());
    join({});
  }

  void join(bootstrap::LocalSettings settings) {
    settings.num_pes = 1;
    settings.launcher_pid = 4711;
    auto joined = LocalBootstrap::join(launcher_.give_theirs(), settings);
    ASSERT_TRUE(joined.ok()) << joined.status().to_string();
    bootstrap_ = std::move(joined).value();
  }

  std::unique_ptr<LauncherWatch> start(std::function<void()> on_word) {
    auto watch = LauncherWatch::start(*bootstrap_, [told = std::move(on_word)](LauncherWord) { told(); });
    EXPECT_TRUE(watch.ok()) << watch.status().to_string();
    return std::move(watch).value();
  }

  SocketPair launcher_;
  std::unique_ptr<Bootstrap> bootstrap_;
};

// Destroying it wakes its thread too.
TEST_F(LauncherWatchTest, ItsOwnEndIsNotTakenForTheLaunchersWord) {
  std::atomic<int> words = 0;
  {
    const auto watch = start([&] { ++words; });
  }
  EXPECT_EQ(words, 0);
}

TEST_F(LauncherWatchTest, TheLaunchersEndIsTold) {
  std::promise<void> told;
  const auto watch = start([&] { told.set_value(); });
  launcher_.close_ours();
  told.get_future().wait();
  EXPECT_EQ(bootstrap_->watch_status().code(), base::StatusCode::kPeerFailed);
}

TEST_F(LauncherWatchTest, TheEndOfTheJobIsTold) {
  std::promise<void> told;
  const auto watch = start([&] { told.set_value(); });
  ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kEnd, {}).ok());
  told.get_future().wait();
  EXPECT_EQ(bootstrap_->watch_status().code(), base::StatusCode::kCancelled);
  // The launcher knows; nobody waits for an answer to this, or prints it.
  ::testing::internal::CaptureStderr();
  bootstrap_->abort(1, "too late to be news");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(LauncherWatchTest, ABusyPeIsEnded) {
  EXPECT_EXIT(
      {
        const auto watch = start([] {});
        if (write_frame(launcher_.ours(), FrameType::kEnd, {}).failed()) std::abort();
        for (volatile bool busy = true; busy;) {
        }
      },
      ::testing::ExitedWithCode(1), "weft: PE 0 ends although it is busy");
}

// A PE of a job that may get another number of PEs.
class ResizedWatchTest : public LauncherWatchTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kWelcome, one_pe_and_no_state()).ok());
    bootstrap::LocalSettings settings;
    settings.can_begin_again = true;
    join(settings);
  }
  static std::vector<std::byte> one_pe_and_no_state() {
    std::vector<std::byte> payload(12);
    bootstrap::set_integer(payload, 0, std::uint32_t{1});
    return payload;
  }
};

TEST_F(ResizedWatchTest, GoesOnAfterAWordThatDoesNotEndTheRun) {
  std::promise<LauncherWord> first;
  std::promise<LauncherWord> second;
  int words = 0;
  auto watch = LauncherWatch::start(
      *bootstrap_, [&](LauncherWord word) { (words++ == 0 ? first : second).set_value(word); });
  ASSERT_TRUE(watch.ok());
  ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kResizeAnswer, {}).ok());
  EXPECT_EQ(first.get_future().get(), LauncherWord::kResizing);
  EXPECT_TRUE(bootstrap_->watch_status().ok());
  watch.value()->go_on();
  ASSERT_TRUE(write_frame(launcher_.ours(), FrameType::kEnd, {}).ok());
  EXPECT_EQ(second.get_future().get(), LauncherWord::kEndsProcess);
}

TEST_F(ResizedWatchTest, ABusyPeIsEndedAlsoIfItHasNotReadAnEarlierWord) {
  EXPECT_EXIT(
      {
        const auto watch = start([] {});
        if (write_frame(launcher_.ours(), FrameType::kResizeAnswer, {}).failed()) std::abort();
        shutdown(launcher_.ours(), SHUT_RDWR);  // the process that runs the test has the socket too
        for (volatile bool busy = true; busy;) {
        }
      },
      ::testing::ExitedWithCode(1), "weft: PE 0 ends although it is busy");
}

TEST_F(LauncherWatchTest, WithoutADescriptorTheRemedyIsNamed) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const base::Status status = LauncherWatch::start(*bootstrap_, [](LauncherWord) {}).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.message(),
            base::format("PE 0 cannot watch its launcher: no event descriptor: {} (errno {}). "
                         "Check `ulimit -n`.",
                         std::strerror(EMFILE), EMFILE));
}

TEST_F(LauncherWatchTest, WithoutAThreadTheRemedyIsNamedAndSignalsArriveAgain) {
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t too_large;
  ASSERT_EQ(pthread_attr_init(&too_large), 0);
  // No address space has room for such a stack.
  ASSERT_EQ(pthread_attr_setstacksize(&too_large, std::size_t{1} << 62), 0);
  ASSERT_EQ(pthread_setattr_default_np(&too_large), 0);
  const base::Status status = LauncherWatch::start(*bootstrap_, [](LauncherWord) {}).status();
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&too_large);
  pthread_attr_destroy(&before);
  EXPECT_EQ(status.message(),
            base::format("PE 0 cannot watch its launcher: no thread: {} (errno {}). Check `ulimit -u`.",
                         std::strerror(EAGAIN), EAGAIN));
  sigset_t blocked;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

TEST(LauncherWatchAloneTest, WithoutALauncherThereIsNothingToWatch) {
  bootstrap::SingletonBootstrap alone;
  EXPECT_TRUE(LauncherWatch::start(alone, [](LauncherWord) { FAIL(); }).ok());
}

}  // namespace
}  // namespace weft::machine
