// What processes of other jobs send, and when they end: claims are refused with a sentence or have no effect, and nothing waits for ever.
#include "models/mpi/connected/connected_processes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "collective/inbox.h"
#include "models/mpi/p2p/matching/header.h"
#include "tests/support/errors.h"
#include "tests/support/link_stranger.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using test_support::says;
using testing::DeafProcess;
using testing::LinkStranger;
using testing::MpiJob;

// The types of messages.
enum Sent : std::uint32_t {
  kSentMessage = 1,
  kSentAnswer,
  kSentStep,
  kSentCall,
  kSentAccepted,
  kSentRefused
};

std::string unique_text(const std::string& what) {
  static int count = 0;
  return what + " of connected_processes_test " + std::to_string(getpid()) + " " + std::to_string(++count);
}

class Parts {
 public:
  template <class... Values>
  explicit Parts(const Values&... values) {
    (add(std::as_bytes(std::span<const Values, 1>(&values, 1))), ...);
  }
  void add(std::span<const std::byte> more) { bytes_.insert(bytes_.end(), more.begin(), more.end()); }
  operator std::span<const std::byte>() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

struct ConnectedJob {
  ConnectedJob() : peer{machine::job_number(unique_text("a peer")), 3, 0} {
    outsiders().set_job(machine::job_number(unique_text("a job")));
    connected = std::make_unique<ConnectedProcesses>(job.runtime(0), job.ranks(0));
    port = connected->open_port();
    stranger.emplace(own());
    stranger->greet(peer, own(), ConnectedProcesses::kOutsideRevision);
  }
  ~ConnectedJob() { connected->close(); }

  Outsiders& outsiders() { return job.ranks(0).shared().outsiders(); }
  ProcessName own() { return outsiders().name_of(0); }
  std::uint64_t port_number() const { return std::stoull(port.substr(port.rfind(':') + 1), nullptr, 16); }
  std::string port_of_peer() const {
    return base::format("weft-port:{:x}:{:x}:{}:7", peer.job[0], peer.job[1], peer.rank);
  }
  std::size_t num_callers() { return connected->find_port(port)->callers.size(); }
  // Returns what ends the job; "" if nothing does before `done`.
  template <class Done>
  std::string run(const Done& done) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < limit) {
      if (!job.runtime(0).failure().empty()) return job.runtime(0).failure();
      if (done()) return "";
      if (!job.runtime(0).step()) std::this_thread::yield();
    }
    return "nothing has happened for a minute";
  }
  std::string end() {
    return run([] { return false; });
  }
  // As run(), until the next message has been handled.
  std::string send(std::uint32_t type, std::span<const std::byte> bytes) {
    stranger->send_message(type, bytes);
    stranger->send_message(kSentCall, Parts(port_number(), ++last_mark, peer));
    const auto& callers = connected->find_port(port)->callers;
    return run([&] { return !callers.empty() && callers.back().call == last_mark; });
  }

  MpiJob job{1};
  ProcessName peer;
  std::unique_ptr<ConnectedProcesses> connected;
  std::string port;
  std::optional<LinkStranger> stranger;
  std::uint64_t last_mark = 1000;  // numbers of calls that tell what has been handled
};

std::string claim(std::uint32_t type, std::span<const std::byte> bytes) {
  return ConnectedJob().send(type, bytes);
}

std::string claim_message(const MessageHeader& header) { return claim(kSentMessage, Parts(header)); }

TEST(ConnectedProcessesTest, MessagesAreChecked) {
  const std::uint64_t context = PointToPoint::new_outside_context_base() << kContextUseBits;
  EXPECT_EQ(claim_message({.context = context}), "");
  EXPECT_TRUE(says(claim(kSentMessage, {}), "is shorter than its header"));
  EXPECT_TRUE(says(claim_message({.context = context, .tag = -1}), "tag -1"));
  EXPECT_TRUE(says(claim_message({.context = context, .source = -1}), "rank -1"));
  EXPECT_TRUE(says(claim_message({.context = context, .flags = kCharged}), "wrong flags"));
  EXPECT_TRUE(says(claim_message({.context = context, .flags = kWantsAnswer}), "0 bytes behind its header"));
  EXPECT_TRUE(says(claim_message({.context = kWorldContext << kContextUseBits}),
                   "for a communicator of this job alone"));
  EXPECT_TRUE(says(claim(kSentAnswer, Parts(std::uint64_t{1} << 32)), "a message that does not wait"));
  EXPECT_TRUE(says(claim(kSentStep, {}), "is shorter than its header"));
  collective::StepHeader step{.from = 1 << 30};
  EXPECT_EQ(claim(kSentStep, Parts(step)), "");
  step.flags = collective::StepHeader::kPosted;
  EXPECT_TRUE(says(claim(kSentStep, Parts(step)), "refers to a board of another job"));
  EXPECT_TRUE(says(claim(99, {}), "a message of type 99"));
}

TEST(ConnectedProcessesTest, AProcessOfThisJobSendsNoMessageOverALink) {
  ConnectedJob one;
  LinkStranger stranger(one.own());
  stranger.greet(one.own(), one.own(), ConnectedProcesses::kOutsideRevision);
  stranger.send_message(kSentStep, Parts(collective::StepHeader()));
  EXPECT_TRUE(says(one.end(), "rank 0 sends this job a message as a process of another job"));
}

TEST(ConnectedProcessesTest, GroupsAreChecked) {
  ConnectedJob one;
  const auto call = [&](std::span<const ProcessName> group, std::span<const std::byte> more = {}) {
    ConnectedJob called;
    Parts bytes(called.port_number(), std::uint64_t{1});
    for (ProcessName name : group) {
      if (name == one.peer) name = called.peer;
      if (name.job == one.own().job) name.job = called.own().job;
      bytes.add(std::as_bytes(std::span(&name, 1)));
    }
    bytes.add(more);
    return called.send(kSentCall, bytes);
  };
  const ProcessName other{machine::job_number("another"), 0, 0};
  EXPECT_EQ(call(std::array{one.peer, other}), "");
  EXPECT_TRUE(says(call({}), "for a group in which it is not"));
  EXPECT_TRUE(says(call(std::array{other}), "for a group in which it is not"));
  EXPECT_TRUE(says(call(std::array{one.peer}, std::array<std::byte, 3>{}), "has 27 bytes"));
  EXPECT_TRUE(says(call(std::array{one.peer, other, one.peer}), "a process twice"));
  EXPECT_TRUE(
      says(call(std::array{one.peer, ProcessName{one.own().job, 1, 0}}), "rank 1 of this job, which has 1"));
  EXPECT_TRUE(says(call(std::array{one.peer, ProcessName{other.job, -1, 0}}), "rank -1"));
  EXPECT_TRUE(says(call(std::array{one.peer, ProcessName{}}), "wrongly"));
}

TEST(ConnectedProcessesTest, AnswersAreChecked) {
  for (const Sent type : {kSentAccepted, kSentRefused}) {
    EXPECT_TRUE(says(claim(type, Parts(std::uint64_t{1}, std::uint64_t{1})), "a call that was not made"));
    EXPECT_TRUE(says(claim(type, {}), "too short"));
  }
  ConnectedJob wrong_context;
  const DeafProcess listening(wrong_context.peer);
  const std::uint64_t number =
      wrong_context.connected->call(wrong_context.port_of_peer(), {wrong_context.own()});
  EXPECT_TRUE(
      says(wrong_context.send(kSentAccepted, Parts(number, std::uint64_t{kWorldContext}, wrong_context.peer)),
           "gives 1 as a context"));
}

// The messages of any type with any bytes end the job with a sentence, or do nothing.
TEST(ConnectedProcessesTest, RandomMessagesDoNoHarm) {
  std::mt19937 random(3);
  auto one = std::make_unique<ConnectedJob>();
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t context = PointToPoint::new_outside_context_base() << kContextUseBits;
    Parts bytes;
    if (random() % 2 == 0)
      bytes = Parts(MessageHeader{.context = context, .flags = static_cast<std::uint32_t>(random() % 3)});
    if (random() % 4 == 0) bytes = Parts(one->port_number(), std::uint64_t{1}, one->peer);
    std::vector<std::byte> more(random() % 100);
    for (std::byte& byte : more) byte = static_cast<std::byte>(random());
    bytes.add(more);
    if (!one->send(random() % 9, bytes).empty()) one = std::make_unique<ConnectedJob>();
  }
}

// --- Ends

TEST(ConnectedProcessesTest, ACallerThatEndsCallsNoMore) {
  ConnectedJob one;
  ASSERT_EQ(one.send(kSentCall, Parts(one.port_number(), std::uint64_t{9}, one.peer)), "");
  ASSERT_EQ(one.num_callers(), 2U);
  EXPECT_FALSE(one.connected->accept(one.connected->find_port(one.port)->callers.front(), 1, {one.own()}));
  one.stranger.reset();
  EXPECT_EQ(one.run([&] { return one.num_callers() == 0; }), "");
}

TEST(ConnectedProcessesTest, ACallAtAProcessThatLeavesIsRefused) {
  ConnectedJob one;
  const DeafProcess listening(one.peer);
  using State = ConnectedProcesses::Call::State;
  const std::uint64_t number = one.connected->call(one.port_of_peer(), {one.own()});
  EXPECT_EQ(one.connected->call(number).state, State::kWaits);
  one.stranger->send_message(machine::LinkHeader::kGoodbye, {});
  EXPECT_EQ(one.run([&] { return one.connected->call(number).state != State::kWaits; }), "");
  EXPECT_EQ(one.connected->call(number).state, State::kRefused);
  // Its own refusal may come later.
  EXPECT_EQ(one.send(kSentRefused, Parts(number, std::uint64_t{0})), "");
}

TEST(ConnectedProcessesTest, AnAwaitedCallerThatEndsIsTold) {
  ConnectedJob one;
  auto listening = std::make_unique<DeafProcess>(one.peer);
  EXPECT_FALSE(one.connected->await_caller(one.port, "nonsense"));
  EXPECT_TRUE(one.connected->await_caller(one.port, one.port_of_peer()));
  EXPECT_FALSE(one.connected->find_port(one.port)->ended.has_value());
  listening.reset();
  one.stranger.reset();
  EXPECT_EQ(one.run([&] { return one.connected->find_port(one.port)->ended.has_value(); }), "");
}

TEST(ConnectedProcessesTest, APortOfTheCallersIsRefusedAtOnce) {
  ConnectedJob one;
  EXPECT_TRUE(says(test_support::thrown_by([&] { one.connected->call(one.port, {one.own()}); }),
                   "is in the group that calls there"));
}

// One that was disconnected in time does not hide the next one.
TEST(ConnectedProcessesTest, EachLossOfAConnectedProcessCounts) {
  ConnectedJob one;
  SharedState& shared = one.job.ranks(0).shared();
  const ProcessName next{one.peer.job, 4, 0};
  auto other = std::make_unique<LinkStranger>(one.own());
  other->greet(next, one.own(), ConnectedProcesses::kOutsideRevision);
  const Members first{shared.number_of(one.peer)};
  one.outsiders().add_uses(first, 1);
  one.outsiders().add_uses({shared.number_of(next)}, 1);
  one.stranger.reset();
  ASSERT_EQ(one.run([&] { return one.connected->num_lost() == 1; }), "");
  one.outsiders().add_uses(first, -1);
  other.reset();
  EXPECT_TRUE(says(one.end(), "rank 4 of a connected job has ended"));
}

// Its end came when no communicator had it yet.
TEST(ConnectedProcessesTest, ALossBeforeTheCommunicatorIsMadeCounts) {
  ConnectedJob one;
  one.stranger.reset();
  ASSERT_EQ(one.run([&] { return one.connected->num_lost() == 1; }), "");
  one.outsiders().add_uses({one.job.ranks(0).shared().number_of(one.peer)}, 1);
  one.connected->watch({one.peer});
  EXPECT_TRUE(says(one.end(), "rank 3 of a connected job has ended"));
}

}  // namespace
}  // namespace weft::mpi
