// Flow control in one process and on one thread. The calls are made outside of the schedulers, where a call never waits,
// except for the waits that coroutines do. Calls that wait are tested by tests/multiproc/test_flood.py.
#include "runtime/message/flow_control.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/future_table.h"
#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

constexpr HandlerId kTestHandler = kNumHandlers - 1;
constexpr std::int64_t kFirst = 100 * FlowControl::kMessageBytes;
constexpr Watermarks kWatermarks{kFirst, 2 * kFirst, 10 * kFirst};

struct Counter : Chare<Counter> {
  Counter() { count = 0; }
  void add() { ++count; }
  void add_bytes(const std::vector<std::uint8_t>& bytes) { count += static_cast<int>(bytes.size() > 0); }
  int answer() { return ++count; }
  int num_added() { return count; }
  int count = 0;
};

struct FlowControlTest : ::testing::Test {
  FlowControlTest() : job(2, "loopback", options()), counters(Group<Counter>::create(job.runtime(0))) {
    EXPECT_EQ(job.run_until([this] { return counters.on_this_pe() != nullptr; }), "");
  }
  static RuntimeOptions options() {
    RuntimeOptions options;
    options.watermarks = kWatermarks;
    return options;
  }
  // The error of the call that throws, and how many passed before.
  template <class Call>
  std::string flood(Call call) {
    try {
      for (passed = 0; passed < 100'000; ++passed) call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), StatusCode::kOutOfMemory);
      return error.what();
    }
    return "";
  }
  void settle() {
    for (int i = 0; i < 1000; ++i) {
      job.runtime(0).step();
      job.runtime(1).step();
    }
  }

  testing::InProcessJob job;
  Group<Counter> counters;
  int passed = 0;
};

TEST(CreditWindow, AClaimBeyondWhatIsOutstandingChangesNothing) {
  SendRoom room{100};
  EXPECT_TRUE(room.take(100));
  EXPECT_FALSE(room.take(1));
  EXPECT_FALSE(room.give_back(102, 101));
  EXPECT_FALSE(room.give_back(std::numeric_limits<std::uint64_t>::max(), 101));
  EXPECT_FALSE(room.give_back(1, -1));
  EXPECT_EQ(room.bytes, -1);
  EXPECT_TRUE(room.give_back(101, 101));
  EXPECT_TRUE(room.has(100));
  EXPECT_FALSE(room.has(101));
}

TEST(CreditWindow, AReportIsDueOnceTheShareIsOwed) {
  OwedCredit owed(10);
  EXPECT_FALSE(owed.add(9));
  EXPECT_TRUE(owed.add(4));
  EXPECT_EQ(owed.unreported_bytes(10), 13);
  owed.restart(10);
  EXPECT_FALSE(owed.is_due());
  owed.report_each();
  EXPECT_TRUE(owed.is_valid(10));
  EXPECT_TRUE(owed.add(0));
  EXPECT_FALSE(OwedCredit(11).is_valid(10));
  EXPECT_FALSE(OwedCredit(-std::numeric_limits<std::int64_t>::max()).is_valid(10));
}

TEST_F(FlowControlTest, ACallPastTheLimitNamesThePeerTheCountAndTheBytes) {
  const std::string error = flood([&] { counters[1].send<&Counter::add>(); });
  // And the message that made the group.
  EXPECT_NE(error.find(std::to_string(passed + 1) + " messages to PE 1"), std::string::npos) << error;
  EXPECT_NE(error.find("the limit is"), std::string::npos) << error;
  EXPECT_GT(passed, 800);
  EXPECT_LT(passed, 1010);
}

TEST_F(FlowControlTest, TheRefusedCallDoesNotArriveAndLaterOnesDo) {
  flood([&] { counters[1].send<&Counter::add>(); });
  settle();
  counters[1].send<&Counter::add>();
  EXPECT_EQ(job.run([this](Runtime& runtime) -> Task<> {
    co_await runtime.quiescence();
    EXPECT_EQ(co_await counters[1].call<&Counter::num_added>(), passed + 1);
  }),
            "");
}

TEST_F(FlowControlTest, CallsToTheOwnPeHaveTheSameLimit) {
  const std::string error = flood([&] { counters.send<&Counter::add>(); });
  EXPECT_NE(error.find("messages"), std::string::npos) << error;
  EXPECT_LT(passed, 1010);
  settle();
  EXPECT_EQ(flood([&, left = 500]() mutable {
              if (left-- > 0) counters.send<&Counter::add>();
            }),
            "");
}

TEST_F(FlowControlTest, LargeArgumentsCountWithTheirBytes) {
  const std::vector<std::uint8_t> bytes(50'000);
  flood([&] { counters[1].send<&Counter::add_bytes>(bytes); });
  EXPECT_LT(passed, 20);
  settle();
  EXPECT_TRUE(job.runtime(0).has_room(1));
}

// UCX would leave arguments of this size at the sender. Those of a broadcast land on arrival all the same.
TEST_F(FlowControlTest, LargeArgumentsOfBroadcastsCountWithTheirBytes) {
  const std::vector<std::uint8_t> bytes(700'000);
  EXPECT_NE(flood([&] { counters.send<&Counter::add_bytes>(bytes); }), "");
  EXPECT_LT(passed, 5);
  settle();
  EXPECT_TRUE(job.runtime(0).has_room(-1));
}

TEST_F(FlowControlTest, NothingAwaitsTheReplyOfARefusedCall) {
  EXPECT_NE(flood([&] { static_cast<void>(counters[1].call<&Counter::answer>()); }), "");
  int awaited = 0;
  for (std::uint64_t id = 1; id < 2000; ++id) awaited += FutureTable::of(job.runtime(0)).find(id) != nullptr;
  EXPECT_EQ(awaited, passed);
}

TEST_F(FlowControlTest, TheRuntimesMessagesPass) {
  int handled = 0;
  job.runtime(1).set_handler(
      kTestHandler, [](void* count, MessagePtr) { ++*static_cast<int*>(count); }, &handled);
  for (int i = 0; i < 3000; ++i) job.runtime(0).send(1, Message::pack(job.runtime(0), kTestHandler, i));
  EXPECT_FALSE(job.runtime(0).has_room(1));
  settle();
  EXPECT_EQ(handled, 3000);
  EXPECT_TRUE(job.runtime(0).has_room(1));
}

// The element of a queued call has moved when its turn comes. Outside of the scheduler a call that is held back throws.
TEST_F(FlowControlTest, ALocalCallThatIsForwardedPasses) {
  EXPECT_NE(flood([&] { counters[1].send<&Counter::add>(); }), "");
  using Call = chare::proxy_detail::LocalCall<Counter, &Counter::add>;
  Runtime& runtime = job.runtime(0);
  constexpr int kForwarded = 10;
  for (int i = 0; i < kForwarded; ++i) {
    auto* const call = chare::proxy_detail::make_local_call<Call>(runtime, counters[1].collection(), 1, {}, 0,
                                                                  std::index_sequence<>());
    runtime.count_sent();
    EXPECT_NO_THROW(call->function(call, runtime, WorkAction::kRun));
  }
  EXPECT_THROW(counters[1].send<&Counter::add>(), Error);
  EXPECT_EQ(job.run([this](Runtime& self) -> Task<> {
    co_await self.quiescence();
    EXPECT_EQ(co_await counters[1].call<&Counter::num_added>(), passed + kForwarded);
  }),
            "");
}

TEST_F(FlowControlTest, RoomComesBackWithoutEnd) {
  EXPECT_EQ(job.run([this](Runtime& runtime) -> Task<> {
    for (int i = 0; i < 20'000; ++i) {
      counters[1].send<&Counter::add>();
      co_await room(runtime);
    }
    EXPECT_EQ(co_await counters[1].call<&Counter::answer>(), 20'001);
  }),
            "");
}

TEST_F(FlowControlTest, AFrameThatWaitsForRoomMayBeDestroyed) {
  job.runtime(0).spawn(
      [](Runtime& runtime, Group<Counter> to) -> Task<> {
        for (;;) {
          to[1].send<&Counter::add>();
          co_await room(runtime);
        }
      }(job.runtime(0), counters),
      "a flood");
  job.runtime(0).step();
  job.runtime(0).close();
}

TEST_F(FlowControlTest, AnUrgentMessageToAnotherHandlerFails) {
  int handled = 0;
  job.runtime(1).set_handler(
      kTestHandler, [](void* count, MessagePtr) { ++*static_cast<int*>(count); }, &handled);
  MessagePtr message = Message::pack(job.runtime(0), kTestHandler, 1);
  message->envelope().flags |= kUrgentFlag | kControlFlag;
  job.runtime(0).send(1, std::move(message));
  EXPECT_NE(job.run_until([&] { return handled > 0; }).find("names handler"), std::string::npos);
}

// A credit whose numbers PE 1 made up.
std::string after_credit(std::int64_t handled_bytes, std::uint64_t handled, std::int64_t sent_bytes) {
  testing::InProcessJob job(2, "loopback", FlowControlTest::options());
  int arrived = 0;
  job.runtime(0).set_handler(
      kTestHandler, [](void* count, MessagePtr) { ++*static_cast<int*>(count); }, &arrived);
  MessagePtr credit = Message::pack(job.runtime(1), kFlowCreditHandler, handled_bytes, handled, sent_bytes);
  credit->envelope().flags |= kControlFlag | kUrgentFlag;
  job.runtime(1).send(0, std::move(credit));
  job.runtime(1).send(0, Message::pack(job.runtime(1), kTestHandler, 1));
  return job.run_until([&] { return arrived > 0; });
}

TEST(FlowCredit, NumbersThatDoNotFitWhatWasSentEndTheJob) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(after_credit(0, 0, 0), "");
  EXPECT_EQ(after_credit(0, 0, 1 << 30), "") << "messages of PE 1 that are still on their way";
  EXPECT_NE(after_credit(1, 0, 0).find("claims to have handled"), std::string::npos);
  EXPECT_NE(after_credit(0, 1, 0).find("claims to have handled"), std::string::npos);
  EXPECT_NE(after_credit(-1, 0, 0).find("claims to have handled"), std::string::npos);
  EXPECT_NE(after_credit(-kMost - 1, 0, 0).find("claims to have handled"), std::string::npos);
  EXPECT_NE(after_credit(kMost, 0, 0).find("claims to have handled"), std::string::npos);
  EXPECT_NE(after_credit(0, 0, -1).find("claims to have handled"), std::string::npos);
  EXPECT_NE(after_credit(0, 0, kMost).find("claims to have handled"), std::string::npos);
}

TEST(Watermarks, ShrinkWithTheNumberOfPes) {
  const Watermarks few = Watermarks::for_job(2, 2);
  const Watermarks many = Watermarks::for_job(1000, 8);
  EXPECT_EQ(few.first_bytes, 32 << 20);
  EXPECT_EQ(many.first_bytes, 1 << 20);
  EXPECT_GT(many.third_bytes, many.second_bytes);
}

}  // namespace
}  // namespace weft::runtime
