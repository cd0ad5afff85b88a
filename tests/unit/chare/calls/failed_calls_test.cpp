// Calls to several elements of which some fail: the caller hears of it at once, also if the others never answer.
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

struct Guest : Chare<Guest> {
  // All others wait for the one that fails.
  Task<> meet(int failing) {
    if (index() == failing) throw std::runtime_error("Guest " + std::to_string(failing) + " is not coming");
    co_await allreduce();
  }
  // A coroutine that fails after a wait.
  Task<> meet_later(int failing) {
    co_await yield_now(runtime());
    if (index() == failing) throw std::runtime_error("Guest " + std::to_string(failing) + " has left");
    co_await allreduce();
  }
  int refuse(int first) {
    if (index() >= first) throw std::runtime_error("refused");
    return index();
  }
  bool may_begin(int) const {
    if (index() == 1) throw std::runtime_error("no condition");
    return false;
  }
  void begin(int) {}
  using WhenConditions = weft::WhenConditions<When<&Guest::begin, &Guest::may_begin>>;
};

// Each has elements on all PEs; the caller is on PE 0.
void run_everywhere(const std::function<Task<>(Runtime&)>& main) {
  for (const int num_pes : {1, 2, 5}) {
    testing::InProcessJob job(num_pes);
    EXPECT_EQ(job.run(main), "") << num_pes << " PEs";
  }
}

TEST(FailedCalls, TheCallerHearsAtOnceIfOthersWaitForTheOneThatFails) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    for (const int failing : {0, 4, 9}) {
      const std::string name = "Guest " + std::to_string(failing);
      auto guests = Array<Guest>::create(runtime, {10});
      EXPECT_TRUE(says(co_await error_of(guests.call<&Guest::meet>(failing)), name + " is not coming"));
      auto others = Array<Guest>::create(runtime, {10});
      EXPECT_TRUE(says(co_await error_of(others.call<&Guest::meet_later>(failing)), name + " has left"));
    }
  });
}

TEST(FailedCalls, SectionsToo) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    auto guests = Array<Guest>::create(runtime, {10});
    auto others = Array<Guest>::create(runtime, {10});
    const auto half = guests.slice({Range{4, 6}});
    EXPECT_TRUE(says(co_await error_of(half.call<&Guest::meet>(7)), "Guest 7 is not coming"));
    const CombinedSection all(others.slice({Range{0, 5}}), guests.slice({Range{0, 3}}));
    EXPECT_TRUE(says(co_await error_of(all.call<&Guest::meet_later>(2)), "Guest 2 has left"));
  });
}

TEST(FailedCalls, AConditionThatThrowsIsToldWhileOtherCallsWait) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    auto guests = Array<Guest>::create(runtime, {10});
    EXPECT_TRUE(says(co_await error_of(guests.call<&Guest::begin>(1)), "no condition"));
  });
}

TEST(FailedCalls, OneErrorArrivesIfSeveralElementsFail) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    auto guests = Array<Guest>::create(runtime, {10});
    for (int first = 9; first >= 0; --first) {
      EXPECT_TRUE(says(co_await error_of(guests.call<&Guest::refuse>(first)), "refused"));
    }
    // What the failed calls have left does not come into others.
    const std::vector<int> results = co_await guests.call<&Guest::refuse>(10);
    EXPECT_EQ(results.size(), 10U);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(results.at(static_cast<std::size_t>(i)), i);
    co_await runtime.quiescence();
  });
}

}  // namespace
}  // namespace weft::chare
