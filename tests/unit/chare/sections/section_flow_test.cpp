// Flow control of calls to sections. Outside of the scheduler a call never waits, and past the limit it throws.
#include <gtest/gtest.h>

#include "weft/weft.h"

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Sink : Chare<Sink> {
  void add(int) { ++calls; }
  int count_calls() { return calls; }
  int calls = 0;
};

struct FloodedSection : ::testing::Test {
  FloodedSection() : job(3, "loopback", options()), cells(Array<Sink>::create(job.runtime(0), {9})) {
    settle();
  }
  static runtime::RuntimeOptions options() {
    runtime::RuntimeOptions options;
    options.watermarks = {100'000, 200'000, 1'000'000};
    return options;
  }
  void settle() {
    for (int i = 0; i < 3000; ++i) {
      for (int pe = 0; pe < 3; ++pe) job.runtime(pe).step();
    }
  }
  // How many calls passed before one threw.
  template <class Call>
  static int flood(Call call) {
    for (int passed = 0; passed < 100'000; ++passed) {
      try {
        call();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), StatusCode::kOutOfMemory);
        return passed;
      }
    }
    ADD_FAILURE() << "nothing was refused";
    return -1;
  }

  testing::InProcessJob job;
  Array<Sink> cells;  // three on each PE
};

TEST_F(FloodedSection, ACallThatIsRefusedReachesNoMember) {
  const auto section = cells.section({3, 4, 6, 7});
  const int passed = flood([&] { section.send<&Sink::add>(1); });
  EXPECT_GT(passed, 100);
  settle();
  section.send<&Sink::add>(1);
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    co_await runtime.quiescence();
    for (const int calls : co_await section.call<&Sink::count_calls>()) EXPECT_EQ(calls, passed + 1);
  }),
            "");
}

TEST_F(FloodedSection, APeBehindAnotherOneWithoutRoomIsNotForgotten) {
  flood([&] { cells[8].send<&Sink::add>(1); });
  while (job.runtime(0).has_room(1)) cells[3].send<&Sink::add>(1);
  const auto section = cells.section({3, 4, 6, 7});
  EXPECT_LT(flood([&] { section.send<&Sink::add>(1); }), 3);
}

// A program that makes as many calls to sections between two calls as there are PEs must not hide the slow PE.
TEST_F(FloodedSection, ThePeWithTheLeastRoomHoldsCallsBack) {
  const auto own = cells.section({0, 1});
  const auto section = cells.section({3, 4, 6, 7});
  flood([&] { cells[8].send<&Sink::add>(1); });
  while (job.runtime(0).has_room(1)) cells[3].send<&Sink::add>(1);
  for (int offset = 0; offset < 3; ++offset) {
    own.send<&Sink::add>(1);
    EXPECT_LT(flood([&] {
                for (int i = 0; i < 2; ++i) own.send<&Sink::add>(1);
                section.send<&Sink::add>(1);
              }),
              3);
  }
}

TEST_F(FloodedSection, ARefusedCallWithResultsLeavesNothingBehind) {
  const auto section = cells.section({3, 4, 6, 7});
  EXPECT_GT(flood([&] { static_cast<void>(section.call<&Sink::count_calls>()); }), 100);
  settle();
  EXPECT_EQ(job.run([&](Runtime&) -> Task<> {
    EXPECT_EQ((co_await section.call<&Sink::count_calls>()).size(), 4U);
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
