// Calls that meet the end of their collection, or come after it.
#include <gtest/gtest.h>

#include <exception>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/counted.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const base::Error& known) {
    return known.what();
  }
}

// Sends a message as another PE would that has not heard of the end yet.
void send_late(Runtime& runtime, Collection& to, const ReplyTo& reply, std::uint64_t index, bool to_all,
               int pe) {
  auto& chares = runtime.model<Chares>();
  const EntryHeader header{to.id(), index, EntryMethod<Counted, &Counted::touch>::info().id, 0, reply};
  auto message = to_all ? chares.make_broadcast_message(header, 0) : chares.make_entry_message(header, 0);
  if (to_all) {
    runtime.broadcast(std::move(message));
  } else {
    runtime.send(pe, std::move(message));
  }
}

TEST(Destruction, ALateCallIsRefusedInWords) {
  for (int pe = 0; pe < 2; ++pe) {
    testing::InProcessJob job(2);
    EXPECT_EQ(job.run([pe](Runtime& runtime) -> Task<> {
      auto array = Array<Counted>::create(runtime, {4});
      co_await array.destroy();
      Future<int> result(runtime);
      send_late(runtime, array.collection(), reply_to(*result.state()), 3, false, pe);
      const std::string why = co_await error_of(result);
      EXPECT_TRUE(says(why, "Counted[3].touch from PE 0 comes too late")) << why;
      EXPECT_TRUE(says(why, "has been destroyed")) << why;
    }),
              "");
  }
}

TEST(Destruction, ALateCallWithoutACallerEndsTheJob) {
  testing::InProcessJob job(2);
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto array = Array<Counted>::create(runtime, {4});
    co_await array.destroy();
    send_late(runtime, array.collection(), {}, 3, false, 1);
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "a call of ") && says(failure, "has been destroyed")) << failure;
}

TEST(Destruction, ALateCallOfAllFailsOnce) {
  testing::InProcessJob job(3);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto array = Array<Counted>::create(runtime, {6});
    auto other = Array<Counted>::create(runtime, {6});
    co_await array.destroy();
    int times = 0;
    std::string why;
    auto& chares = runtime.model<Chares>();
    const ReplyTo reply = chares.expect_gather([&](Pup& p) {
      ++times;
      const auto error = read_gathered(p, [](std::uint64_t) {}, [](std::uint64_t, Pup&) {});
      why = message_of(error);
    });
    send_late(runtime, array.collection(), reply, 0, true, 0);
    co_await runtime.quiescence();
    EXPECT_EQ(times, 1);
    EXPECT_TRUE(says(why, "Counted.touch from PE 0") && says(why, "has been destroyed")) << why;
    // The next gather is not disturbed.
    EXPECT_EQ((co_await other.call<&Counted::touch>()), std::vector<int>(6, 1));
  }),
            "");
}

struct LateCaller : Chare<LateCaller> {
  explicit LateCaller(ElementProxy<Counted> to_in) : to(to_in) {}
  ~LateCaller() override {
    if (!runtime().stopped()) to.send<&Counted::note>();
  }
  int ready() { return 1; }
  ElementProxy<Counted> to;
};

TEST(Destruction, DestructorsMayCall) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto counted = Singleton<Counted>::create(runtime, 0);
    auto callers = Array<LateCaller>::create(runtime, {10}, counted.element());
    co_await callers.call<&LateCaller::ready>();
    co_await callers.destroy();
    co_await runtime.quiescence();
    EXPECT_EQ((co_await counted.element().call<&Counted::touch>()), 11);
  }),
            "");
}

// A call whose arguments land out of band, in a coroutine.
struct Lander : Chare<Lander> {
  Lander() { ++num_counted; }
  ~Lander() override { --num_counted; }
  Task<int> take(std::vector<int> values) {
    co_await yield_now(runtime());
    seen += static_cast<int>(values.size());
    co_return seen;
  }
  int seen = 0;
};

TEST(Destruction, ACallThatLandsMeanwhileEndsOnce) {
  for (int turns = 0; turns < 30; ++turns) {
    num_counted = 0;
    testing::InProcessJob job(2, turns % 2 == 0 ? "loopback" : "ucx");
    EXPECT_EQ(job.run([turns](Runtime& runtime) -> Task<> {
      auto landers = Array<Lander>::create(runtime, Shape(2).with_map(Map::kRoundRobin));
      co_await landers.created();
      auto result = landers[1].call<&Lander::take>(std::vector<int>(50'000));
      for (int turn = 0; turn < turns / 2; ++turn) co_await yield_now(runtime);
      auto ended = landers.destroy();
      try {
        EXPECT_EQ(co_await result, 50'000);
      } catch (const base::Error& error) {
        EXPECT_TRUE(says(error.what(), "has been destroyed")) << error.what();
      }
      co_await ended;
      co_await runtime.quiescence();
      EXPECT_EQ(num_counted, 0);
    }),
              "")
        << turns;
  }
}

struct Destroyer : Chare<Destroyer> {
  Task<std::string> destroy_then_call(CollectionProxy<Counted> given) {
    auto ended = given.destroy();
    auto late = given[0].call<&Counted::touch>();  // before this PE has heard of the end
    const std::string why = co_await error_of(late);
    co_await ended;
    co_return why;
  }
};

TEST(Destruction, ACallInTheQueueOfThePeIsAnsweredInEveryCase) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto destroyer = Singleton<Destroyer>::create(runtime, 0);
    auto given = Array<Counted>::create(runtime, {1});
    co_await given.call<&Counted::touch>();
    const std::string why = co_await destroyer.element().call<&Destroyer::destroy_then_call>(given);
    EXPECT_TRUE(says(why, "has been destroyed")) << why;
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
