// Entry methods and futures that wait for quiescence.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/chare/quiescence.h"
#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::says;

int under_way = 0;  // calls of spread(), on all PEs
int num_called = 0;

struct Spreader : Chare<Spreader> {
  Spreader() = default;
  explicit Spreader(Moved) {}
  void pup(Pup& p) { p | calls; }

  void spread(int depth) {
    --under_way;
    if (depth == 0) return;
    for (int i = 1; i <= 2; ++i) {
      ++under_way;
      proxy()[static_cast<int>((linear_index() * 2 + static_cast<std::uint64_t>(i)) % 13)]
          .send<&Spreader::spread>(depth - 1);
    }
  }
  void next(const std::string& phase) {
    EXPECT_EQ(under_way, 0);
    calls.push_back(phase);
    ++num_called;
  }
  void next_and_go(int to_pe) {
    calls.emplace_back("go");
    ++num_called;
    migrate(to_pe);
  }
  void ask(FutureList<int> all) { quiescence(runtime(), proxy().target<&Spreader::tell>(all)); }
  void tell(FutureList<int> all) { all.set(static_cast<int>(linear_index())); }
  std::vector<std::string> called() { return calls; }
  std::vector<std::string> calls;
};

class QuiescenceTarget : public ::testing::TestWithParam<int> {};

TEST_P(QuiescenceTarget, RunsOnceWhenNothingIsUnderWay) {
  under_way = 0;
  num_called = 0;
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto spreaders = Array<Spreader>::create(runtime, {13});
    const auto ends = spreaders.section({0, 12});
    Future<> idle(runtime);
    under_way = 1;
    spreaders[0].send<&Spreader::spread>(9);
    quiescence(runtime, spreaders[3].target<&Spreader::next>(std::string("one")));
    quiescence(runtime, spreaders.target<&Spreader::next>(std::string("all")));
    quiescence(runtime, ends.target<&Spreader::next>(std::string("some")));
    quiescence(runtime, target_of(idle));
    EXPECT_FALSE(idle.is_ready());
    co_await idle;
    EXPECT_EQ(under_way, 0);
    co_await runtime.quiescence();
    EXPECT_EQ(num_called, 1 + 13 + 2);
    const std::vector<std::string> called = co_await spreaders[5].call<&Spreader::called>();
    EXPECT_EQ(called, std::vector<std::string>(1, "all"));
    EXPECT_EQ((co_await spreaders[3].call<&Spreader::called>()).size(), 2U);
    // From any PE.
    FutureList<int> all(runtime, 13);
    spreaders[12].send<&Spreader::ask>(all);
    EXPECT_EQ((co_await all).size(), 13U);
  }),
            "");
}

// The call to all elements reaches each once, also if the first of them move at once.
TEST_P(QuiescenceTarget, ReachesElementsThatMoveOnce) {
  num_called = 0;
  testing::InProcessJob job(GetParam());
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto spreaders = Array<Spreader>::create(runtime, {13});
    for (int round = 1; round <= 20; ++round) {
      quiescence(runtime, spreaders.target<&Spreader::next_and_go>(round % runtime.num_pes()));
      co_await runtime.quiescence();  // the target is told first
      co_await runtime.quiescence();
      EXPECT_EQ(num_called, 13 * round);
    }
    for (const auto& calls : co_await spreaders.call<&Spreader::called>()) EXPECT_EQ(calls.size(), 20U);
  }),
            "");
}

TEST_P(QuiescenceTarget, OfADestroyedCollectionEndsTheJob) {
  testing::InProcessJob job(GetParam());
  const std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto spreaders = Array<Spreader>::create(runtime, {13});
    co_await spreaders.created();
    quiescence(runtime, spreaders.target<&Spreader::next>(std::string("late")));
    co_await spreaders.destroy();
    co_await runtime.make_future<>();
  });
  EXPECT_TRUE(says(failure, "has been destroyed"));
}

INSTANTIATE_TEST_SUITE_P(Pes, QuiescenceTarget, ::testing::Values(1, 2, 4));

}  // namespace
}  // namespace weft::chare
