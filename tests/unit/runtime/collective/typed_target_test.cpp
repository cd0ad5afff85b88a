// That a wrong type does not compile is tested by tests/unit/chare/calls/refused_arguments.cpp.
#include "weft/runtime/typed_target.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::runtime {
namespace {

using target_detail::kAgree;
using test_support::error_of;
using test_support::says;

static_assert(kAgree<long, long long>);
static_assert(kAgree<std::vector<std::vector<long>>, std::vector<std::vector<long long>>>);
static_assert(!kAgree<int, unsigned>);
static_assert(!kAgree<bool, char>);
static_assert(!kAgree<int, double>);
static_assert(!kAgree<std::vector<int>, int>);

struct Giver : Chare<Giver> {
  void give(Future<int> sum, Future<std::vector<int>> all, Future<std::vector<int>> joined, Future<> none) {
    contribute(1, Reducer::kSum, target_of(sum));
    contribute(static_cast<int>(index()), Reducer::kGather, target_of(all));
    contribute(std::vector<int>{1, 2}, Reducer::kConcat, target_of(joined));
    contribute(target_of(none));
  }
  void give_to_methods() {
    contribute(1LL, Reducer::kSum, proxy()[0].target<&Giver::take_long>());
    contribute(std::vector<double>{1, 2}, Reducer::kSum, proxy()[0].target<&Giver::take_span>("bound"));
    contribute(std::string("a"), Reducer::kGather, proxy()[0].target<&Giver::take_names>());
  }
  void take_long(long value) { heard += value; }
  void take_span(std::string_view bound, std::span<const double> values) {
    heard += bound == "bound" ? static_cast<long>(std::accumulate(values.begin(), values.end(), 0.0)) : 0;
  }
  void take_names(const std::vector<std::string>& names) { heard += static_cast<long>(100 * names.size()); }
  long get() { return heard; }

  void sum_for_a_list(Future<std::vector<int>> list) { contribute(1, Reducer::kSum, target_of(list)); }
  void list_for_a_sum(Future<int> sum) { contribute(1, Reducer::kGather, target_of(sum)); }

  long heard = 0;
};

TEST(TypedTarget, TargetsOfTheRightTypesGetTheirResults) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = Array<Giver>::create(runtime, {3});
    Future<int> sum(runtime);
    Future<std::vector<int>> all(runtime);
    Future<std::vector<int>> joined(runtime);
    Future<> none(runtime);
    givers.send<&Giver::give>(sum, all, joined, none);
    EXPECT_EQ(co_await sum, 3);
    const std::vector<int> indices = co_await all;
    EXPECT_EQ(indices, (std::vector<int>{0, 1, 2}));
    const std::vector<int> lists = co_await joined;
    EXPECT_EQ(lists, (std::vector<int>{1, 2, 1, 2, 1, 2}));
    co_await none;
    givers.send<&Giver::give_to_methods>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await givers[0].call<&Giver::get>(), 3 + 9 + 300);
  }),
            "");
}

TEST(TypedTarget, AReducerThatGivesTheOtherFormIsRefused) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto givers = Array<Giver>::create(runtime, {1});
    Future<std::vector<int>> list(runtime);
    Future<int> sum(runtime);
    EXPECT_TRUE(
        says(co_await error_of(givers[0].call<&Giver::sum_for_a_list>(list)), "which only kGather gives"));
    EXPECT_TRUE(
        says(co_await error_of(givers[0].call<&Giver::list_for_a_sum>(sum)), "kGather gives a std::vector"));
  }),
            "");
}

}  // namespace
}  // namespace weft::runtime
