// Reducers that throw: the job ends, and the message names the reducer, the collection and the PE.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

using test_support::says;

int refuse_sum(int, int) { throw std::domain_error("no sum of these"); }

enum class FailingWay : int { kAllReduce, kTarget, kSection, kUneven };

struct Refuser : Chare<Refuser> {
  Task<> add(FailingWay way, Section<Refuser> some) {
    Future<int> target(runtime());
    Future<std::vector<int>> vector(runtime());
    switch (way) {
      case FailingWay::kAllReduce:
        co_await allreduce<&refuse_sum>(1);
        break;
      case FailingWay::kTarget:
        contribute<&refuse_sum>(1, target_of(target));
        co_await target;
        break;
      case FailingWay::kSection:
        contribute<&refuse_sum>(1, target_of(target), some);
        co_await target;
        break;
      case FailingWay::kUneven:
        contribute(std::vector<int>(linear_index() + 1), Reducer::kSum, target_of(vector));
        co_await vector;
        break;
    }
  }
};

std::string failure_of_reducer(FailingWay way, int num_pes) {
  testing::InProcessJob job(num_pes);
  return job.run([way](Runtime& runtime) -> Task<> {
    auto refusers = Array<Refuser>::create(runtime, {4});
    const std::vector<Index> members = {Index{0}, Index{1}, Index{3}};
    co_await refusers.call<&Refuser::add>(way, refusers.section(members));
  });
}

TEST(FailingReducers, AreNamedWithTheirCollection) {
  for (const int num_pes : {1, 2, 4}) {
    for (const FailingWay way :
         {FailingWay::kAllReduce, FailingWay::kTarget, FailingWay::kSection, FailingWay::kUneven}) {
      SCOPED_TRACE("way " + std::to_string(static_cast<int>(way)) + ", PEs " + std::to_string(num_pes));
      const std::string failure = failure_of_reducer(way, num_pes);
      EXPECT_TRUE(says(failure, way == FailingWay::kUneven ? "the reducer sum of a reduction of weft::chare::"
                                                           : "refuse_sum of a reduction of weft::chare::"));
      EXPECT_TRUE(says(failure, "::Refuser on PE "));
      EXPECT_TRUE(
          says(failure, way == FailingWay::kUneven ? "all must have the same length" : "no sum of these"));
      EXPECT_TRUE(says(failure, "which ends the job"));
    }
  }
}

}  // namespace
}  // namespace weft::chare
