#include "weft/pgas/remote_call.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/pgas/team_job.h"

namespace weft::testing {
namespace {

using pgas::DistObject;
using pgas::World;

void ghosts_arrived(World& world, DistObject<std::vector<int>>& sums, rma::GlobalPtr<int> ghosts, int count) {
  auto& pgas = world.runtime().model<pgas::Pgas>();
  const std::span<const int> values(pgas.mapped(ghosts), static_cast<std::size_t>(count));
  sums->push_back(std::accumulate(values.begin(), values.end(), 0));
}
void refuses(const std::string& why) { throw std::runtime_error(why); }

// A call behind a copy finds the data there, and takes global pointers and distributed objects.
TEST(RemoteCall, RunsBehindItsCopy) {
  TeamJob job(3);
  EXPECT_EQ(job.run_on_all([](World& world) -> Task<> {
    auto& pgas = world.runtime().model<pgas::Pgas>();
    const rma::Segment from = pgas.make_segment<int>(100);
    const rma::Segment ghosts = pgas.make_segment<int>(100);
    for (int i = 0; i < 100; ++i) pgas.mapped(from.pointer<int>())[i] = world.rank() + 1;
    DistObject<std::vector<int>> sums(world, {});
    const auto all = co_await world.allgather(ghosts.pointer<int>());
    const int right = (world.rank() + 1) % 3;
    const rma::GlobalPtr<int> to = all[static_cast<std::size_t>(right)];
    rma::Completions completions;
    completions.remote = pgas::remote_call<&ghosts_arrived>(world.runtime(), sums, to, 100);
    co_await pgas.copy(from.pointer<int>(), to, 100, std::move(completions));
    co_await world.runtime().quiescence();
    const int left = (world.rank() + 2) % 3;
    EXPECT_EQ(*sums, std::vector<int>{100 * (left + 1)});
    co_await world.barrier();
  }),
            "");
}

TEST(RemoteCall, AnExceptionEndsTheJob) {
  TeamJob job(2);
  const std::string failure = job.run_on_all([](World& world) -> Task<> {
    auto& pgas = world.runtime().model<pgas::Pgas>();
    const rma::Segment from = pgas.make_segment<int>(1);
    const auto all = co_await world.allgather(from.pointer<int>());
    if (world.rank() == 0) {
      rma::Completions completions;
      completions.remote = pgas::remote_call<&refuses>(world.runtime(), "not today");
      co_await pgas.copy(from.pointer<int>(), all[1], 1, std::move(completions));
    }
    co_await world.runtime().quiescence();
    co_await world.barrier();
  });
  EXPECT_NE(failure.find("not today"), std::string::npos) << failure;
  EXPECT_NE(failure.find("on PE 1"), std::string::npos) << failure;
}

}  // namespace
}  // namespace weft::testing
