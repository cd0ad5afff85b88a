#include "models/mpi/collective/reduction_check.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

struct CheckedPe {
  bool has_worked = false;
  int error_class = MPI_SUCCESS;
  std::string text;
};

runtime::Task<> note_work(bool& has_worked) {
  has_worked = true;
  co_return;
}

runtime::Task<> check_at(CollectiveContext context, ReductionCall mine, CheckedPe& pe, int& left) {
  try {
    co_await reduce_checked(context, mine, note_work(pe.has_worked));
  } catch (const TransferFailed& failure) {
    pe.error_class = failure.error_class();
    pe.text = failure.what();
  }
  --left;
}

// What each PE gets if it makes its call.
std::vector<CheckedPe> compare_calls(const std::vector<ReductionCall>& calls) {
  const int num_pes = static_cast<int>(calls.size());
  MpiJob job(num_pes);
  auto all = std::make_shared<Members>(calls.size());
  std::iota(all->begin(), all->end(), 0);
  std::vector<CheckedPe> pes(calls.size());
  int left = num_pes;
  for (int pe = 0; pe < num_pes; ++pe) {
    const auto place = static_cast<std::size_t>(pe);
    const CollectiveContext context(job.ranks(pe), 40, 0, all, pe);
    job.runtime(pe).spawn(check_at(context, calls[place], pes[place], left), "a reduction");
  }
  EXPECT_EQ(job.run_until([&] { return left == 0; }), "");
  return pes;
}

void expect_refused(const std::vector<ReductionCall>& calls, const std::string& sentence) {
  for (const CheckedPe& pe : compare_calls(calls)) {
    EXPECT_FALSE(pe.has_worked);
    EXPECT_EQ(pe.error_class, MPI_ERR_NOT_SAME);
    EXPECT_NE(pe.text.find(sentence), std::string::npos) << pe.text;
  }
}

void add_nothing(void* /*in*/, void* /*inout*/, int* /*count*/, MPI_Datatype* /*type*/) {}

class ReductionCheck : public ::testing::Test {
 protected:
  ReductionCall call(MPI_Op operation, ReductionKind kind = ReductionKind::kAllreduce, int root = 0) const {
    return {kind, *operations_.find(operation), root};
  }
  static ReductionCall call_of_program(bool commutes) {
    const auto own = Ref<ReductionOperator>::adopt(new ReductionOperator(&add_nothing, commutes));
    return {ReductionKind::kAllreduce, *own};
  }

 private:
  PredefinedOperators operations_;
};

TEST_F(ReductionCheck, CallsThatAreAlikeGoOn) {
  for (const ReductionCall& alike :
       {call(MPI_SUM), call(MPI_MIN, ReductionKind::kReduce, 2), call_of_program(true)}) {
    for (const CheckedPe& pe : compare_calls(std::vector<ReductionCall>(4, alike))) {
      EXPECT_TRUE(pe.has_worked);
      EXPECT_EQ(pe.error_class, MPI_SUCCESS) << pe.text;
    }
  }
}

TEST_F(ReductionCheck, AllProcessesHearOfADifference) {
  expect_refused({call(MPI_SUM), call(MPI_SUM), call(MPI_MAX)},
                 "rank 2 calls MPI_Allreduce with MPI_MAX, and rank 0 MPI_Allreduce with MPI_SUM");
  expect_refused(
      {call(MPI_SUM, ReductionKind::kReduce, 1), call(MPI_SUM, ReductionKind::kReduce, 0)},
      "rank 1 calls MPI_Reduce to rank 0 with MPI_SUM, and rank 0 MPI_Reduce to rank 1 with MPI_SUM");
  expect_refused({call(MPI_SUM), call(MPI_SUM, ReductionKind::kScan)}, "rank 1 calls MPI_Scan");
  expect_refused({call_of_program(true), call_of_program(false)},
                 "an operator of the program that does not commute");
}

TEST_F(ReductionCheck, ADamagedCallIsADifferenceToo) {
  ReductionCall damaged = call(MPI_SUM);
  damaged.kind = static_cast<ReductionKind>(77);
  damaged.operation = 0x999;
  expect_refused({call(MPI_SUM), damaged}, "rank 1 calls another function");
}

}  // namespace
}  // namespace weft::mpi
