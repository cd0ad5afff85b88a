#include "runtime/collective/reductions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/message/handlers.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

std::string longest(std::string a, std::string b) { return a.size() >= b.size() ? a : b; }

struct Member : Chare<Member> {
  Task<std::vector<double>> all_reducers() {
    double mine = index() + 1;
    std::vector<double> results;
    for (Reducer reducer : {Reducer::kSum, Reducer::kProduct, Reducer::kMin, Reducer::kMax}) {
      results.push_back(co_await allreduce(mine, reducer));
    }
    results.push_back(co_await allreduce<int>(index() == 0 ? 0 : 1, Reducer::kLogicalAnd));
    results.push_back(co_await allreduce<int>(index() == 0 ? 0 : 1, Reducer::kLogicalOr));
    results.push_back(co_await allreduce<int>(1, Reducer::kLogicalXor));
    co_return results;
  }
  // Minimum and maximum when member `who` contributes NaN, as numbers and in vectors.
  Task<std::vector<double>> extremes(int who) {
    const double mine = index() == who ? std::nan("") : static_cast<double>(static_cast<int>(index()));
    std::vector<double> results;
    for (Reducer reducer : {Reducer::kMin, Reducer::kMax}) {
      results.push_back(co_await allreduce(mine, reducer));
      std::vector<float> vector{static_cast<float>(mine), 1.0F};
      std::vector<float> reduced = co_await allreduce(vector, reducer);
      results.insert(results.end(), reduced.begin(), reduced.end());
    }
    co_return results;
  }
  Task<std::vector<int>> truths() {
    std::vector<int> both{0, 5};
    std::vector<int> results = co_await allreduce(both, Reducer::kLogicalOr);
    results.push_back(co_await allreduce<int>(5, Reducer::kLogicalAnd));
    co_return results;
  }
  Task<std::vector<double>> vectors() {
    std::vector<double> mine{1.0, static_cast<double>(static_cast<int>(index()))};
    std::vector<double> sum = co_await allreduce(mine, Reducer::kSum);
    std::vector<double> all = co_await allreduce(mine, Reducer::kConcat);
    sum.insert(sum.end(), all.begin(), all.end());
    co_return sum;
  }
  Task<std::vector<std::string>> names() {
    co_return co_await allgather("member " + std::to_string(index()));
  }
  Task<std::string> longest_name() { co_return co_await allreduce<&longest>(std::string(index() + 1, 'x')); }
  void give(Future<int> result) { contribute<int>(index(), Reducer::kSum, target_of(result)); }
  void give_to(ElementProxy<Member> to) {
    contribute<int>(index(), Reducer::kMax, to.target<&Member::take>());
  }
  void give_to_all() { contribute<int>(1, Reducer::kSum, proxy().target<&Member::take>()); }
  void many(int count) {
    for (int i = 0; i < count; ++i) contribute<int>(i, Reducer::kSum, proxy()[0].target<&Member::take>());
  }
  // A large value may be overtaken by the small ones behind it.
  Task<bool> large_then_small() {
    std::vector<double> large(200'000, 1.0);
    Future<std::vector<double>> first = allreduce(large, Reducer::kSum);
    Future<int> second = allreduce<int>(1, Reducer::kSum);
    Future<int> third = allreduce<int>(2, Reducer::kSum);
    int n = static_cast<int>(collection().shape().size());
    std::vector<double> sum = co_await first;
    co_return sum.back() == n&& co_await second == n&& co_await third == 2 * n;
  }
  void disagree() {
    contribute<int>(1, index() == 0 ? Reducer::kSum : Reducer::kMax, proxy()[0].target<&Member::take>());
  }
  void take(int value) { taken.push_back(value); }
  std::vector<int> what_was_taken() { return taken; }
  std::vector<int> taken;
};

TEST(ReductionsOfOne, LogicalResultsAreTheSameForOneMemberAsForMore) {
  for (const int members : {1, 2}) {
    testing::InProcessJob job(1);
    std::vector<std::vector<int>> results;
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto made = Array<Member>::create(runtime, Shape(members));
      results = co_await made.call<&Member::truths>();
    }),
              "");
    EXPECT_EQ(results.back(), (std::vector<int>{0, 1, 1})) << members;
  }
}

// On 1, 3 and 11 PEs, with elements on all of them and on one only, rooted on PE 0 and elsewhere.
class Reductions : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  int num_pes() const { return std::get<0>(GetParam()); }
  int num_members() const { return std::get<1>(GetParam()); }
  Shape shape() const { return num_members() == 2 ? Shape(2).on_pe(num_pes() - 1) : Shape(num_members()); }
};

TEST_P(Reductions, EveryReducerGivesEveryMemberTheSame) {
  testing::InProcessJob job(num_pes());
  std::vector<std::vector<double>> results;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto members = Array<Member>::create(runtime, shape());
    results = co_await members.call<&Member::all_reducers>();
  }),
            "");
  int n = num_members();
  double factorial = 1;
  for (int i = 2; i <= n; ++i) factorial *= i;
  ASSERT_EQ(results.size(), static_cast<std::size_t>(n));
  for (auto& result : results) {
    EXPECT_EQ(result, (std::vector<double>{n * (n + 1) / 2.0, factorial, 1, static_cast<double>(n), 0,
                                           n > 1 ? 1.0 : 0.0, static_cast<double>(n % 2)}));
  }
}

TEST_P(Reductions, NanWinsWhoeverContributesIt) {
  testing::InProcessJob job(num_pes());
  std::vector<std::vector<double>> results;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto members = Array<Member>::create(runtime, shape());
    for (int who = 0; who < num_members(); ++who) {
      std::vector<std::vector<double>> round = co_await members.call<&Member::extremes>(who);
      results.insert(results.end(), round.begin(), round.end());
    }
  }),
            "");
  ASSERT_EQ(results.size(), static_cast<std::size_t>(num_members() * num_members()));
  for (auto& result : results) {
    ASSERT_EQ(result.size(), 6U);
    for (int i : {0, 1, 3, 4}) EXPECT_TRUE(std::isnan(result[static_cast<std::size_t>(i)]));
    for (int i : {2, 5}) EXPECT_EQ(result[static_cast<std::size_t>(i)], 1.0);
  }
}

TEST_P(Reductions, VectorsGathersAndCustomMerges) {
  testing::InProcessJob job(num_pes());
  std::vector<std::vector<double>> vectors;
  std::vector<std::vector<std::string>> names;
  std::vector<std::string> longest_names;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto members = Array<Member>::create(runtime, shape());
    vectors = co_await members.call<&Member::vectors>();
    names = co_await members.call<&Member::names>();
    longest_names = co_await members.call<&Member::longest_name>();
  }),
            "");
  int n = num_members();
  std::vector<double> expected{static_cast<double>(n), n * (n - 1) / 2.0};
  std::vector<std::string> expected_names;
  for (int i = 0; i < n; ++i) {
    expected.insert(expected.end(), {1.0, static_cast<double>(i)});
    expected_names.push_back("member " + std::to_string(i));
  }
  for (auto& vector : vectors) EXPECT_EQ(vector, expected);
  for (auto& name : names) EXPECT_EQ(name, expected_names);
  for (auto& name : longest_names) EXPECT_EQ(name.size(), static_cast<std::size_t>(n));
}

TEST_P(Reductions, TargetsAreFuturesElementsAndCollections) {
  testing::InProcessJob job(num_pes());
  int sum = 0;
  std::vector<std::vector<int>> taken;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto members = Array<Member>::create(runtime, shape());
    Future<int> result(runtime);
    members.send<&Member::give>(result);
    sum = co_await result;
    members.send<&Member::give_to>(members[num_members() - 1]);
    co_await runtime.quiescence();
    members.send<&Member::give_to_all>();
    co_await runtime.quiescence();
    taken = co_await members.call<&Member::what_was_taken>();
  }),
            "");
  int n = num_members();
  EXPECT_EQ(sum, n * (n - 1) / 2);
  for (int i = 0; i < n; ++i) {
    std::vector<int> expected = i == n - 1 ? std::vector<int>{n - 1, n} : std::vector<int>{n};
    EXPECT_EQ(taken[static_cast<std::size_t>(i)], expected) << i;
  }
}

TEST_P(Reductions, ManyInFlightKeepTheirOrder) {
  testing::InProcessJob job(num_pes());
  std::vector<int> taken;
  constexpr int kCount = 50;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto members = Array<Member>::create(runtime, shape());
    members.send<&Member::many>(kCount);
    co_await runtime.quiescence();
    taken = (co_await members.call<&Member::what_was_taken>())[0];
  }),
            "");
  std::sort(taken.begin(), taken.end());
  ASSERT_EQ(taken.size(), static_cast<std::size_t>(kCount));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(taken[static_cast<std::size_t>(i)], i * num_members());
}

INSTANTIATE_TEST_SUITE_P(Jobs, Reductions,
                         ::testing::Values(std::tuple(1, 1), std::tuple(1, 5), std::tuple(3, 2),
                                           std::tuple(3, 10), std::tuple(11, 2), std::tuple(11, 3),
                                           std::tuple(11, 20)));

// Over UCX, where large messages take another way than small ones, with PEs two levels below the root.
TEST(ReductionOrder, PartialsMayOvertakeOneAnother) {
  for (const char* machine : {"loopback", "ucx"}) {
    testing::InProcessJob job(11, machine);
    std::vector<bool> right;
    EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
      auto members = Array<Member>::create(runtime, {11});
      for (int round = 0; round < 5; ++round) {
        for (bool one : co_await members.call<&Member::large_then_small>()) right.push_back(one);
      }
    }),
              "")
        << machine;
    EXPECT_EQ(right, std::vector<bool>(55, true)) << machine;
  }
}

TEST(ReductionErrors, DisagreeingReducersEndTheJob) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto members = Array<Member>::create(runtime, {4});
    members.send<&Member::disagree>();
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("name different reducers"), std::string::npos) << failure;
}

struct Root : Chare<Root> {
  Task<int> make_and_reduce() {
    auto members = Array<Member>::create(runtime(), Shape(9));
    Future<int> result(runtime());
    members.send<&Member::give>(result);
    co_return co_await result;
  }
};

TEST(ReductionRoots, CollectionsMadeOnAnyPeReduceThere) {
  testing::InProcessJob job(5);
  std::vector<int> sums;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto roots = Group<Root>::create(runtime);
    sums = co_await roots.call<&Root::make_and_reduce>();
  }),
            "");
  EXPECT_EQ(sums, std::vector<int>(5, 36));
}

// What a peer names is checked before it is used.

std::string deliver_to(const Target& target) {
  testing::InProcessJob job(2);
  const ScopeId scope{0, kFirstModelScope};
  job.runtime(0).reductions().open(scope, 1, 0, true);
  job.runtime(1).reductions().open(scope, 1, 1, true);
  job.runtime(1).reductions().contribute(scope, 0, 0, Reducer::kSum, value_combiner<int>(Reducer::kSum),
                                         base::pack(5), target);
  return job.run_until([] { return false; });
}

TEST(Reductions, ATargetWithAHandlerThatDoesNotExistIsRefused) {
  for (HandlerId handler : {kNumHandlers, HandlerId{60'000}, HandlerId{kNumHandlers - 1}}) {
    const std::string failure = deliver_to({handler, 0, 0, {}});
    EXPECT_NE(failure.find("a result is for handler " + std::to_string(handler)), std::string::npos)
        << failure;
    EXPECT_NE(deliver_to({handler, kBroadcastFlag, 0, {}}).find("a result is for handler"),
              std::string::npos);
  }
}

TEST(Reductions, ATargetOnAPeThatDoesNotExistIsRefused) {
  EXPECT_NE(deliver_to({kFutureSetHandler, 0, 7, {}}).find("PE 7 does not exist"), std::string::npos);
}

TEST(Reductions, AConcatenationOfBytesThatAreNoVectorIsRefused) {
  testing::InProcessJob job(2);
  const ScopeId scope{0, kFirstModelScope};
  job.runtime(0).reductions().open(scope, 1, 0, true);
  job.runtime(1).reductions().open(scope, 1, 1, true);
  job.runtime(1).reductions().contribute(scope, 0, 0, Reducer::kConcat, nullptr, base::pack(std::uint8_t{5}),
                                         {kFutureSetHandler, 0, 0, {}});
  const std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("a contribution of 1 bytes to a concatenation"), std::string::npos) << failure;
}

TEST(Reductions, AScopeWhoseRootDoesNotExistIsRefused) {
  testing::InProcessJob job(2);
  MessagePtr empty =
      Message::pack(job.runtime(1), kReductionEmptyHandler, std::uint32_t{2'000'000'000}, kFirstModelScope);
  job.runtime(1).send(0, std::move(empty));
  const std::string failure = job.run_until([] { return false; });
  EXPECT_NE(failure.find("rooted at PE 2000000000 of 2"), std::string::npos) << failure;
}

}  // namespace
}  // namespace weft::runtime
