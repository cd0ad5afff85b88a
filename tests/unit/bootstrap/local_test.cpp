#include "machine/bootstrap/launcher/local.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "base/format.h"
#include "tests/support/bytes_of.h"
#include "tests/unit/bootstrap/socket_pair.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;
using testing::bytes_of;

constexpr int kPe = 1;
constexpr int kNumPes = 2;

std::vector<std::byte> u32(std::uint32_t value) {
  std::vector<std::byte> bytes(4);
  set_integer(bytes, 0, value);
  return bytes;
}

// An answer to an exchange of two PEs that claims these sizes.
std::vector<std::byte> exchanged(std::uint64_t first, std::uint64_t second, std::string_view text) {
  std::vector<std::byte> payload(16 + text.size());
  set_integer(payload, 0, first);
  set_integer(payload, 8, second);
  std::memcpy(payload.data() + 16, text.data(), text.size());
  return payload;
}

// The test is the launcher; it writes its answers before the PE asks, so one thread is enough.
class LocalTest : public ::testing::Test {
 protected:
  void answer(FrameType type, std::span<const std::byte> payload = {}) {
    ASSERT_TRUE(write_frame(sockets_.ours(), type, payload).ok());
  }

  Result<std::unique_ptr<Bootstrap>> join() {
    LocalSettings settings;
    settings.pe = kPe;
    settings.num_pes = kNumPes;
    settings.launcher_pid = 4711;
    return LocalBootstrap::join(sockets_.give_theirs(), settings);
  }

  void join_welcomed() {
    answer(FrameType::kWelcome, u32(kNumPes));
    auto joined = join();
    ASSERT_TRUE(joined.ok()) << joined.status().to_string();
    bootstrap_ = std::move(joined).value();
    Result<Frame> hello = read_frame(sockets_.ours());
    ASSERT_TRUE(hello.ok());
    EXPECT_EQ(hello->type, FrameType::kHello);
    EXPECT_EQ(get_integer<std::uint32_t>(hello->payload, 0), std::uint32_t{kPe});
  }

  bool watch_fd_readable() const {
    pollfd watched{bootstrap_->watch_fd(), POLLIN, 0};
    return poll(&watched, 1, 0) == 1;
  }

  SocketPair sockets_;
  std::unique_ptr<Bootstrap> bootstrap_;
};

void expect_says(const Status& status, StatusCode code, std::string_view words) {
  EXPECT_EQ(status.code(), code) << status.to_string();
  EXPECT_NE(status.message().find(words), std::string_view::npos) << status.to_string();
}

TEST_F(LocalTest, JoinsAndKnowsItsPlace) {
  join_welcomed();
  EXPECT_EQ(bootstrap_->name(), "local");
  EXPECT_EQ(bootstrap_->pe(), kPe);
  EXPECT_EQ(bootstrap_->num_pes(), kNumPes);
  EXPECT_EQ(bootstrap_->local_rank(), kPe);
  EXPECT_EQ(bootstrap_->local_size(), kNumPes);
}

// PE 0 of weft.run(main, pes=...): the job does not end the process.
TEST_F(LocalTest, AProcessThatHasStartedTheLauncherHasNoneAboveIt) {
  join_welcomed();
  EXPECT_TRUE(bootstrap_->has_launcher());
  SocketPair sockets;
  ASSERT_TRUE(write_frame(sockets.ours(), FrameType::kWelcome, u32(kNumPes)).ok());
  LocalSettings settings;
  settings.num_pes = kNumPes;
  settings.is_attached = true;
  auto attached = LocalBootstrap::join(sockets.give_theirs(), settings);
  ASSERT_TRUE(attached.ok()) << attached.status().to_string();
  EXPECT_FALSE((*attached)->has_launcher());
}

// In a job that goes on when it loses PEs.
class KeptJobTest : public LocalTest {
 protected:
  void join_kept() {
    answer(FrameType::kWelcome, u32(kNumPes));
    LocalSettings settings;
    settings.pe = kPe;
    settings.num_pes = kNumPes;
    settings.keeps_job = true;
    auto joined = LocalBootstrap::join(sockets_.give_theirs(), settings);
    ASSERT_TRUE(joined.ok()) << joined.status().to_string();
    bootstrap_ = std::move(joined).value();
    ASSERT_TRUE(read_frame(sockets_.ours()).ok());
  }
  void lose(std::uint32_t pe) {
    std::vector<std::byte> lost = u32(pe);
    lost.push_back(std::byte{'!'});
    answer(FrameType::kLost, lost);
  }
};

TEST_F(KeptJobTest, SaysThatItOutlivesLosses) {
  join_kept();
  EXPECT_TRUE(bootstrap_->can_outlive_losses());
  bootstrap_->outlive_losses(true);
  Result<Frame> told = read_frame(sockets_.ours());
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->type, FrameType::kOutlives);
  EXPECT_EQ(get_integer<std::uint32_t>(told->payload, 0), 1u);
}

TEST_F(KeptJobTest, TakesLossesOneByOne) {
  join_kept();
  EXPECT_FALSE(bootstrap_->take_loss());
  lose(0);
  answer(FrameType::kEnd);
  const std::optional<LostPe> lost = bootstrap_->take_loss();
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->pe, 0);
  EXPECT_EQ(lost->why, "!");
  EXPECT_FALSE(bootstrap_->take_loss());
  EXPECT_EQ(bootstrap_->watch_status().code(), StatusCode::kCancelled);
}

TEST_F(KeptJobTest, ALossOfNoPeIsRefused) {
  join_kept();
  lose(kNumPes);
  EXPECT_FALSE(bootstrap_->take_loss());
}

TEST_F(KeptJobTest, ALossDoesNotEndABarrier) {
  join_kept();
  lose(0);
  answer(FrameType::kBarrierDone);
  EXPECT_TRUE(bootstrap_->barrier().ok());
}

class RestartedTest : public LocalTest {
 protected:
  static LocalSettings restarted(std::uint32_t incarnation) {
    LocalSettings settings;
    settings.pe = kPe;
    settings.num_pes = kNumPes;
    settings.launcher_pid = 4711;
    settings.can_begin_again = true;
    settings.incarnation = incarnation;
    return settings;
  }
  void welcome(std::uint64_t newest_protected) {
    std::vector<std::byte> payload(12);
    set_integer(std::span(payload), 0, std::uint32_t{kNumPes});
    set_integer(std::span(payload), 4, newest_protected);
    answer(FrameType::kWelcome, payload);
  }
  void tell_to_begin_again(std::uint32_t incarnation) {
    std::vector<std::byte> payload = u32(incarnation);
    for (const int number : {kPe, kNumPes}) {
      const std::vector<std::byte> bytes = u32(static_cast<std::uint32_t>(number));
      payload.insert(payload.end(), bytes.begin(), bytes.end());
    }
    const std::vector<std::byte> why = bytes_of("PE 0 was killed");
    payload.insert(payload.end(), why.begin(), why.end());
    answer(FrameType::kBeginAgain, payload);
  }
  void expect_hello(std::uint32_t incarnation) {
    Result<Frame> hello = read_frame(sockets_.ours());
    ASSERT_TRUE(hello.ok());
    EXPECT_EQ(hello->type, FrameType::kHello);
    ASSERT_EQ(hello->payload.size(), 8u);
    EXPECT_EQ(get_integer<std::uint32_t>(hello->payload, 4), incarnation);
  }
  void join_first() {
    welcome(0);
    auto joined = LocalBootstrap::join(sockets_.give_theirs(), restarted(0));
    ASSERT_TRUE(joined.ok()) << joined.status().to_string();
    bootstrap_ = std::move(joined).value();
    expect_hello(0);
  }
};

TEST_F(RestartedTest, JoinsTheNextIncarnationOverItsConnection) {
  join_first();
  EXPECT_TRUE(bootstrap_->can_begin_again());
  EXPECT_EQ(bootstrap_->next_word(), LauncherWord::kEndsProcess);  // if the launcher had gone
  EXPECT_FALSE(begins_again());
  tell_to_begin_again(1);
  EXPECT_EQ(bootstrap_->next_word(), LauncherWord::kEndsRun);
  expect_says(bootstrap_->watch_status(), StatusCode::kCancelled, "PE 0 was killed");
  EXPECT_TRUE(begins_again());
  bootstrap_->abort(1, "says nothing more");
  bootstrap_.reset();
  // A further loss crosses the hello.
  tell_to_begin_again(2);
  expect_says(LocalBootstrap::join(restarted(1)).status(), StatusCode::kCancelled, "PE 0 was killed");
  expect_hello(1);
  EXPECT_TRUE(begins_again());
  welcome(7);
  auto joined = LocalBootstrap::join(restarted(2));
  ASSERT_TRUE(joined.ok()) << joined.status().to_string();
  expect_hello(2);
  EXPECT_FALSE(begins_again());
  EXPECT_EQ((*joined)->incarnation().number, 2u);
  EXPECT_EQ((*joined)->incarnation().newest_protected, 7u);
  (*joined)->tell_protected(8);
  Result<Frame> told = read_frame(sockets_.ours());
  ASSERT_TRUE(told.ok());
  EXPECT_EQ(told->type, FrameType::kProtected);
  EXPECT_EQ(get_integer<std::uint64_t>(told->payload, 0), 8u);
}

TEST_F(RestartedTest, ANumberOfPesIsAskedForAndPlanned) {
  join_first();
  int changes = 0;
  bootstrap_->resizing()->on_change = [&changes] { ++changes; };
  ASSERT_TRUE(bootstrap_->ask_for_resize(1).ok());
  Result<Frame> asked = read_frame(sockets_.ours());
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->type, FrameType::kResize);
  EXPECT_EQ(get_integer<std::uint32_t>(asked->payload, 0), 1u);
  answer(FrameType::kResizeAnswer, bytes_of("no"));
  EXPECT_EQ(bootstrap_->next_word(), LauncherWord::kResizing);
  EXPECT_TRUE(bootstrap_->watch_status().ok());
  EXPECT_EQ(bootstrap_->resizing()->answers.front(), "no");
  std::vector<std::byte> plan(12);
  set_integer(std::span(plan), 0, std::uint32_t{5});
  set_integer(std::span(plan), 4, std::uint32_t{1});
  set_integer(std::span(plan), 8, std::uint32_t{kPe});
  answer(FrameType::kResizePlan, plan);
  answer(FrameType::kBarrierDone, {});
  EXPECT_TRUE(bootstrap_->barrier().ok());  // a word between two collectives
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(bootstrap_->resizing()->plan, 5u);
  EXPECT_EQ(bootstrap_->resizing()->num_pes, 1u);
  EXPECT_EQ(bootstrap_->resizing()->leaving, (std::vector<std::uint32_t>{kPe}));
  answer(FrameType::kResizePlan, u32(5));
  expect_says(bootstrap_->watch_status(), StatusCode::kCorrupt, "resize plan");
}

// In a process of its own, which has left for good.
TEST_F(RestartedTest, AProcessThatLeavesClosesItsConnection) {
  join_first();
  std::vector<std::byte> payload = u32(1);
  for (const std::uint32_t number : {kNoPe, std::uint32_t{1}}) {
    const std::vector<std::byte> bytes = u32(number);
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  answer(FrameType::kBeginAgain, payload);
  EXPECT_EXIT(
      {
        bool right = !leaves_job();
        right = bootstrap_->watch_status().code() == StatusCode::kCancelled && right;
        right = leaves_job() && begins_again() && right;
        const int connection = bootstrap_->watch_fd();
        bootstrap_.reset();
        std::_Exit(right && fcntl(connection, F_GETFD) < 0 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(RestartedTest, AProcessThatIsReplacedStopsWithAllPes) {
  join_first();
  tell_to_begin_again(1);
  expect_says(bootstrap_->watch_status(), StatusCode::kCancelled, "PE 0 was killed");
  bootstrap_->give_up_connection();
  answer(FrameType::kResizeAnswer, bytes_of("of the incarnation that has ended"));
  tell_to_begin_again(2);  // a further loss
  answer(FrameType::kAllStopped, u32(2));
  ASSERT_TRUE(tell_stopped().ok());
  EXPECT_TRUE(await_all_stopped().ok());
  for (const std::uint32_t incarnation : {1u, 2u}) {
    Result<Frame> told = read_frame(sockets_.ours());
    ASSERT_TRUE(told.ok());
    EXPECT_EQ(told->type, FrameType::kStopped);
    EXPECT_EQ(get_integer<std::uint32_t>(told->payload, 0), incarnation);
  }
  for (const std::vector<std::byte>& other : {u32(1), u32(3), std::vector<std::byte>(8)}) {
    answer(FrameType::kAllStopped, other);
    expect_says(await_all_stopped(), StatusCode::kCorrupt, "another incarnation");
  }
  answer(FrameType::kEnd, bytes_of("the job ends"));
  expect_says(await_all_stopped(), StatusCode::kCancelled, "the job ends");
  welcome(0);
  EXPECT_TRUE(LocalBootstrap::join(restarted(2)).ok());
}

TEST_F(RestartedTest, AnAbortThatALossHasCausedBeginsAgain) {
  join_first();
  tell_to_begin_again(1);
  bootstrap_->abort(1, "a message could not be sent to PE 0");
  EXPECT_TRUE(begins_again());
  bootstrap_->give_up_connection();
  bootstrap_.reset();
  welcome(0);
  EXPECT_TRUE(LocalBootstrap::join(restarted(1)).ok());
}

TEST_F(LocalTest, AProgramThatCannotBeginAgainIsNotToldTo) {
  join_welcomed();
  answer(FrameType::kBeginAgain, u32(1));
  expect_says(bootstrap_->barrier(), StatusCode::kCorrupt, "begin its job again");
  EXPECT_FALSE(begins_again());
}

TEST_F(LocalTest, RefusalSaysWhy) {
  answer(FrameType::kEnd, bytes_of("PE 1 has joined already"));
  expect_says(join().status(), StatusCode::kCancelled, "PE 1 has joined already");
}

TEST_F(LocalTest, WelcomeToAnotherJobIsRefused) {
  answer(FrameType::kWelcome, u32(3));
  expect_says(join().status(), StatusCode::kInvalidArgument, "WEFT_NUM_PES says 2 PEs, `weft run` started 3");
}

TEST_F(LocalTest, MalformedWelcomeIsRefused) {
  answer(FrameType::kWelcome, bytes_of("too long"));
  expect_says(join().status(), StatusCode::kCorrupt, "a welcome of 8 bytes");
}

TEST_F(LocalTest, LauncherThatHangsUpIsNamed) {
  sockets_.close_ours();
  expect_says(join().status(), StatusCode::kPeerFailed, "PE 1 lost `weft run` (pid 4711)");
}

TEST_F(LocalTest, ExchangeGivesEverybodysBytes) {
  join_welcomed();
  answer(FrameType::kExchanged, exchanged(0, 4, "mine"));
  auto all = bootstrap_->exchange(bytes_of("mine"));
  ASSERT_TRUE(all.ok()) << all.status().to_string();
  EXPECT_EQ(*all, (std::vector<std::vector<std::byte>>{{}, bytes_of("mine")}));
  Result<Frame> sent = read_frame(sockets_.ours());
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->type, FrameType::kExchange);
  EXPECT_EQ(sent->text(), "mine");
}

TEST_F(LocalTest, ExchangeThatDoesNotAddUpIsRefused) {
  // Sizes too large, bytes left over, and no room for the sizes.
  for (const std::uint64_t second : {std::uint64_t{5}, std::uint64_t{3}, ~std::uint64_t{0} - 2}) {
    SCOPED_TRACE(second);
    if (bootstrap_ == nullptr) join_welcomed();
    answer(FrameType::kExchanged, exchanged(0, second, "mine"));
    expect_says(bootstrap_->exchange({}).status(), StatusCode::kCorrupt, "do not add up for 2 PEs");
  }
  answer(FrameType::kExchanged, bytes_of("short"));
  expect_says(bootstrap_->exchange({}).status(), StatusCode::kCorrupt, "do not add up for 2 PEs");
}

TEST_F(LocalTest, BarrierWaitsForItsAnswer) {
  join_welcomed();
  answer(FrameType::kBarrierDone);
  EXPECT_TRUE(bootstrap_->barrier().ok());
  Result<Frame> sent = read_frame(sockets_.ours());
  ASSERT_TRUE(sent.ok());
  EXPECT_EQ(sent->type, FrameType::kBarrier);
}

TEST_F(LocalTest, AnswerToSomethingElseIsRefused) {
  join_welcomed();
  answer(FrameType::kBarrierDone);
  expect_says(bootstrap_->exchange({}).status(), StatusCode::kCorrupt,
              "'barrier done' instead of 'exchanged'");
}

TEST_F(LocalTest, EndOfTheJobEndsWaiting) {
  join_welcomed();
  answer(FrameType::kEnd, bytes_of("the job ends: PE 0 was killed"));
  expect_says(bootstrap_->barrier(), StatusCode::kCancelled, "the job ends: PE 0 was killed");
}

TEST_F(LocalTest, WatchFdTellsOfTheEndOfTheJob) {
  join_welcomed();
  EXPECT_FALSE(watch_fd_readable());
  EXPECT_TRUE(bootstrap_->watch_status().ok());
  answer(FrameType::kEnd, bytes_of("the job ends: PE 0 was killed"));
  EXPECT_TRUE(watch_fd_readable());
  expect_says(bootstrap_->watch_status(), StatusCode::kCancelled, "PE 0 was killed");
}

TEST_F(LocalTest, WatchFdTellsOfTheLaunchersDeath) {
  join_welcomed();
  sockets_.close_ours();
  EXPECT_TRUE(watch_fd_readable());
  expect_says(bootstrap_->watch_status(), StatusCode::kPeerFailed, "PE 1 lost `weft run` (pid 4711)");
}

// The launcher is there: nothing may be read from it, and it must not be called gone.
TEST_F(LocalTest, AnErrorOfTheSocketIsNotTakenForTheLaunchersEnd) {
  join_welcomed();
  const int no_socket = eventfd(0, EFD_CLOEXEC);
  ASSERT_GE(no_socket, 0);
  ASSERT_GE(dup2(no_socket, bootstrap_->watch_fd()), 0);
  close(no_socket);
  const std::string sentence = base::format(
      "PE 1 cannot use its connection to `weft run` (pid 4711), descriptor {}: writing failed: {}. The "
      "program "
      "must not close or change descriptors that it has not opened",
      bootstrap_->watch_fd(), std::strerror(ENOTSOCK));
  expect_says(bootstrap_->barrier(), StatusCode::kInternal, sentence);
  expect_says(bootstrap_->exchange({}).status(), StatusCode::kInternal, sentence);
}

TEST_F(LocalTest, FinishedAndAbortAreTold) {
  join_welcomed();
  answer(FrameType::kEnd, bytes_of("the job ends"));
  bootstrap_->abort(-3, "why");
  bootstrap_->finished(5);
  Result<Frame> abort = read_frame(sockets_.ours());
  Result<Frame> finished = read_frame(sockets_.ours());
  ASSERT_TRUE(abort.ok() && finished.ok());
  EXPECT_EQ(abort->type, FrameType::kAbort);
  EXPECT_EQ(get_integer<std::int32_t>(abort->payload, 0), -3);
  EXPECT_EQ(abort->text(4), "why");
  EXPECT_EQ(finished->type, FrameType::kFinished);
  EXPECT_EQ(get_integer<std::int32_t>(finished->payload, 0), 5);
}

TEST_F(LocalTest, AbortWithoutALauncherIsPrintedHere) {
  join_welcomed();
  sockets_.close_ours();
  ::testing::internal::CaptureStderr();
  bootstrap_->abort(1, "last words");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "last words\n");
}

}  // namespace
}  // namespace weft::machine::bootstrap
