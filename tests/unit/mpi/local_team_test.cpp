// Teams of ranks that share PEs, and the collectives in which they work together, on PEs of one process.
#include "models/mpi/communicators/local_team.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <numeric>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/datatype/predefined.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;
using testing::RanksOn;

constexpr std::uint64_t kTeamContext = 21;

TEST(LocalTeam, KnowsItsMembersAndTheLeaders) {
  MpiJob job(2, RanksOn{{0, 1, 0, 1, 1}});
  const Members members = {4, 0, 2, 1};  // on PE 1, 0, 0, 1
  const auto team = LocalTeam::find(job.rank(0, 0), kTeamContext, members);
  ASSERT_NE(team, nullptr);
  EXPECT_EQ(team->size(), 2U);
  EXPECT_EQ(*team->leaders(), (Members{4, 0}));
  EXPECT_EQ(team->pe_place(), 1);
  EXPECT_TRUE(team->is_here(1));
  EXPECT_FALSE(team->is_here(3));
  EXPECT_EQ(team->place_of(2), 1U);
  EXPECT_EQ(&team->leader_engine(), &job.rank(0, 0));
  EXPECT_FALSE(team->keeps_order());
  EXPECT_EQ(LocalTeam::find(job.rank(0, 2), kTeamContext, members), team);
}

TEST(LocalTeam, IsNoneIfEachMemberHasAPeOfItsOwn) {
  MpiJob job(2, RanksOn{{0, 0, 1, 1}});
  EXPECT_EQ(LocalTeam::find(job.rank(0, 0), kTeamContext, {0, 2}), nullptr);
  MpiJob simple(2);
  EXPECT_EQ(LocalTeam::find(simple.ranks(0), kTeamContext, {0, 1}), nullptr);
}

TEST(LocalTeam, KeepsTheOrderOfRanksInBlocks) {
  MpiJob job(2, RanksOn{{0, 0, 1, 1}});
  const auto team = LocalTeam::find(job.rank(1, 2), kTeamContext, {0, 1, 2, 3});
  ASSERT_NE(team, nullptr);
  EXPECT_TRUE(team->keeps_order());
}

class TeamCollectives : public ::testing::TestWithParam<std::vector<int>> {
 protected:
  TeamCollectives() : job_(3, RanksOn{GetParam()}), all_(std::make_shared<Members>(GetParam().size())) {
    std::iota(all_->begin(), all_->end(), 0);
  }
  std::size_t size() const { return all_->size(); }
  int pe_of(std::size_t rank) const { return GetParam()[rank]; }

  // Runs `body(context)`, a coroutine, at each rank at the same time.
  template <class Body>
  void run(const Body& body) {
    std::size_t left = size();
    const auto counted = [](Task<> task, std::size_t& count) -> Task<> {
      co_await std::move(task);
      --count;
    };
    for (std::size_t i = 0; i < size(); ++i) {
      PointToPoint& engine = job_.rank(pe_of(i), static_cast<int>(i));
      const CollectiveContext context(engine, kTeamContext, next_tag_, all_, static_cast<int>(i),
                                      LocalTeam::find(engine, kTeamContext, *all_));
      teams_.push_back(LocalTeam::find(engine, kTeamContext, *all_));
      job_.runtime(pe_of(i)).spawn(counted(body(context), left), "a rank");
    }
    ASSERT_EQ(job_.run_until([&] { return left == 0; }), "");
    ++next_tag_;
  }

  MpiJob job_;
  std::shared_ptr<Members> all_;
  std::vector<std::shared_ptr<LocalTeam>> teams_;
  int next_tag_ = 0;
  PredefinedTypes types_;
  PredefinedOperators operations_;
};

DataView view_of_team(std::vector<int>& values) {
  return DataView::of_bytes(values.data(), values.size() * sizeof(int));
}

TEST_P(TeamCollectives, GiveWhatTheyPromise) {
  for (const std::size_t count : {1U, 20000U}) {
    for (int root = 0; root < static_cast<int>(size()); ++root) {
      std::vector<std::vector<int>> data(size(), std::vector<int>(count, -1));
      std::iota(data[static_cast<std::size_t>(root)].begin(), data[static_cast<std::size_t>(root)].end(),
                root);
      run([&](const CollectiveContext& context) {
        return broadcast_in_teams(context, root,
                                  view_of_team(data[static_cast<std::size_t>(context.rank())]));
      });
      for (const auto& one : data) EXPECT_EQ(one, data[static_cast<std::size_t>(root)]);

      Reduction sum{Ref<Datatype>(*types_.find(MPI_INT)), Ref<ReductionOperator>(*operations_.find(MPI_SUM)),
                    static_cast<MPI_Count>(count)};
      std::vector<std::vector<int>> out(size(), std::vector<int>(count, -1));
      run([&](const CollectiveContext& context) {
        const auto i = static_cast<std::size_t>(context.rank());
        return reduce_in_teams(context, root, sum, view_of_team(data[i]), view_of_team(out[i]));
      });
      for (std::size_t k = 0; k < count; ++k) {
        const int expected = static_cast<int>(size()) * (root + static_cast<int>(k));
        ASSERT_EQ(out[static_cast<std::size_t>(root)][k], expected);
      }
      run([&](const CollectiveContext& context) {
        const auto i = static_cast<std::size_t>(context.rank());
        return allreduce_in_teams(context, sum, view_of_team(data[i]), view_of_team(out[i]));
      });
      for (const auto& one : out) EXPECT_EQ(one, out[static_cast<std::size_t>(root)]);
    }
  }
}

TEST_P(TeamCollectives, NoRankLeavesABarrierBeforeTheLastHasArrived) {
  for (int round = 0; round < 3; ++round) {
    std::size_t arrived = 0;
    std::size_t early = 0;
    run([&](CollectiveContext context) -> Task<> {
      const auto one = [](CollectiveContext own, std::size_t num, std::size_t& here,
                          std::size_t& before) -> Task<> {
        ++here;
        co_await barrier_in_teams(own);
        before += here < num ? 1 : 0;
      };
      return one(std::move(context), size(), arrived, early);
    });
    EXPECT_EQ(early, 0U);
  }
}

// One member's buffer is too small: it alone fails.
TEST_P(TeamCollectives, AnErrorBelongsToItsMember) {
  std::vector<std::vector<int>> data(size(), std::vector<int>(8, 3));
  data.back().resize(4);
  std::vector<int> failed(size(), 0);
  run([&](CollectiveContext context) -> Task<> {
    const auto one = [](CollectiveContext own, DataView view, int& error) -> Task<> {
      try {
        co_await broadcast_in_teams(own, 0, view);
      } catch (const TransferFailed& failure) {
        error = failure.error_class();
      }
    };
    const auto i = static_cast<std::size_t>(context.rank());
    return one(std::move(context), view_of_team(data[i]), failed[i]);
  });
  for (std::size_t i = 0; i + 1 < size(); ++i) EXPECT_EQ(failed[i], MPI_SUCCESS);
  EXPECT_EQ(failed.back(), MPI_ERR_TRUNCATE);
}

INSTANTIATE_TEST_SUITE_P(Maps, TeamCollectives,
                         ::testing::Values(std::vector<int>{0, 0, 1, 1, 2, 2, 2},
                                           std::vector<int>{2, 1, 0, 2, 1, 0},
                                           std::vector<int>{0, 0, 0, 0, 1, 2}));

}  // namespace
}  // namespace weft::mpi
