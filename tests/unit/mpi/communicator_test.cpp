#include "models/mpi/communicators/communicator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/communicators/communicator_creation.h"
#include "models/mpi/rank.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::MpiJob;

// One communicator for each PE, and what each PE runs.
class Ranks {
 public:
  explicit Ranks(int num_pes) : job_(num_pes) {
    auto all = std::make_shared<Members>(static_cast<std::size_t>(num_pes));
    std::iota(all->begin(), all->end(), 0);
    for (int pe = 0; pe < num_pes; ++pe) world_.push_back(make(pe, kWorldContext, {all, pe, nullptr}));
  }
  Ref<Communicator> make(int pe, std::uint64_t context, Communicator::Groups groups) {
    return Ref<Communicator>::adopt(
        new Communicator(job_.ranks(pe), context, std::move(groups), 0, this_rank().errors_return));
  }
  Ref<Communicator> world(int pe) { return world_[static_cast<std::size_t>(pe)]; }
  PointToPoint& engine(int pe) { return job_.ranks(pe); }
  int size() const { return job_.num_pes(); }

  // Runs `body(pe)`, a coroutine, on each PE at the same time.
  template <class Body>
  void run(const Body& body) {
    int left = size();
    for (int pe = 0; pe < size(); ++pe) job_.runtime(pe).spawn(counted(body(pe), left), "a rank");
    ASSERT_EQ(job_.run_until([&] { return left == 0; }), "");
  }
  // The same, but the PEs begin one after another: each one when the others can do nothing more without it.
  template <class Body>
  void run_in_turn(const std::vector<int>& order, const Body& body) {
    int left = size();
    for (const int pe : order) {
      job_.runtime(pe).spawn(counted(body(pe), left), "a rank");
      job_.settle();
    }
    ASSERT_EQ(job_.run_until([&] { return left == 0; }), "");
  }

 private:
  static Task<> counted(Task<> task, int& count) {
    co_await std::move(task);
    --count;
  }

  MpiJob job_;
  std::vector<Ref<Communicator>> world_;
};

struct CollectiveContexts : ::testing::TestWithParam<int> {};

TEST_P(CollectiveContexts, AllgatherGivesTheBytesOfAllInTheOrderOfRanks) {
  Ranks ranks(GetParam());
  ranks.run([&](int pe) -> Task<> {
    int mine = pe * 3 + 1;
    const CollectiveContext context = ranks.world(pe)->next_collective_contexts().local;
    const std::vector<std::byte> all = co_await allgather_bytes(context, bytes_of_value(mine));
    EXPECT_EQ(all.size(), sizeof(int) * static_cast<std::size_t>(ranks.size()));
    for (int other = 0; other < ranks.size(); ++other) {
      int value = 0;
      std::memcpy(&value, all.data() + sizeof(int) * static_cast<std::size_t>(other), sizeof value);
      EXPECT_EQ(value, other * 3 + 1);
    }
  });
}

TEST_P(CollectiveContexts, BroadcastGivesTheRootsBytesToAll) {
  Ranks ranks(GetParam());
  for (int root = 0; root < ranks.size(); ++root) {
    ranks.run([&](int pe) -> Task<> {
      int value = pe == root ? 77 + root : -1;
      const CollectiveContext context = ranks.world(pe)->next_collective_contexts().local;
      co_await broadcast_bytes(context, root, bytes_of_value(value));
      EXPECT_EQ(value, 77 + root);
    });
  }
}

TEST_P(CollectiveContexts, NoProcessLeavesABarrierBeforeAllHaveCome) {
  Ranks ranks(GetParam());
  int come = 0;
  ranks.run([&](int pe) -> Task<> {
    ++come;
    const CollectiveContext context = ranks.world(pe)->next_collective_contexts().local;
    co_await barrier(context);
    EXPECT_EQ(come, ranks.size());
  });
}

INSTANTIATE_TEST_SUITE_P(Communicator, CollectiveContexts, ::testing::Values(1, 2, 3, 4, 7, 8));

TEST(Communicator, SplitGroupsByColorAndOrdersByKey) {
  Ranks ranks(7);
  std::set<std::uint64_t> contexts;
  ranks.run([&](int pe) -> Task<> {
    const Choice choice{pe == 6 ? kNoColor : pe % 2, -pe};
    const Ref<Communicator> half = co_await split(ranks.world(pe), choice);
    if (pe == 6) {
      EXPECT_FALSE(half);
      co_return;
    }
    EXPECT_EQ(half->size(), 3);
    EXPECT_EQ(half->world_rank_of_peer(half->rank()), pe);
    EXPECT_EQ(half->rank(), 2 - pe / 2);
    contexts.insert(half->context());
  });
  EXPECT_EQ(contexts.size(), 2U);
}

// The agreements of two duplicates overlap: they must not get one context.
TEST(Communicator, DuplicatesAtTheSameTimeHaveTheirOwnContexts) {
  Ranks ranks(3);
  std::vector<std::set<std::uint64_t>> contexts(2);
  ranks.run([&](int pe) -> Task<> {
    std::vector<Ref<Communicator>> copies;
    for (int i = 0; i < 2; ++i) copies.push_back(begin_duplicate(*ranks.world(pe)));
    Task<> first = duplicate(ranks.world(pe), copies[0]);
    co_await first;
    co_await duplicate(ranks.world(pe), copies[1]);
    for (std::size_t i = 0; i < 2; ++i) contexts[i].insert(copies[i]->context());
  });
  EXPECT_EQ(contexts[0].size(), 1U);
  EXPECT_EQ(contexts[1].size(), 1U);
  EXPECT_NE(contexts[0], contexts[1]);
}

TEST(Communicator, TwoGroupsMakeAnIntercommunicatorAndMerge) {
  Ranks ranks(5);
  ranks.run([&](int pe) -> Task<> {
    const Choice choice{pe < 2 ? 0 : 1, pe};
    const Ref<Communicator> half = co_await split(ranks.world(pe), choice);
    LeaderBridge bridge{ranks.world(pe), pe < 2 ? 2 : 0, 9};
    const Ref<Communicator> inter = co_await create_inter(half, 0, std::move(bridge));
    EXPECT_TRUE(inter->is_inter());
    EXPECT_EQ(inter->size(), pe < 2 ? 2 : 3);
    EXPECT_EQ(inter->remote_size(), pe < 2 ? 3 : 2);
    const Ref<Communicator> merged = co_await merge(inter, pe < 2);
    EXPECT_EQ(merged->size(), 5);
    EXPECT_EQ(merged->rank(), pe < 2 ? pe + 3 : pe - 2);
    const Ref<Communicator> copy = begin_duplicate(*inter);
    co_await duplicate(inter, copy);
    EXPECT_NE(copy->context(), inter->context());
    EXPECT_EQ(compare(*copy, *inter), MPI_CONGRUENT);
    // Colors that one group alone has give no communicator.
    const Choice pairs{pe == 4 ? 5 : pe % 2, 0};
    const Ref<Communicator> part = co_await split(inter, pairs);
    EXPECT_EQ(static_cast<bool>(part), pe != 4);
  });
}

TEST(Communicator, AGroupAloneMakesACommunicator) {
  Ranks ranks(4);
  ranks.run([&](int pe) -> Task<> {
    if (pe == 1) co_return;
    const auto members = std::make_shared<const Members>(Members{3, 0, 2});
    const int place = pe == 3 ? 0 : pe == 0 ? 1 : 2;
    const Ref<Communicator> one = co_await create_group(ranks.world(pe), members, place, 5);
    EXPECT_EQ(one->rank(), place);
    Ref<ErrorHandler> handler = this_rank().errors_return;
    const Ref<Communicator> other =
        co_await create_from_group(ranks.engine(pe), members, place, "text", handler);
    EXPECT_EQ(other->size(), 3);
    EXPECT_NE(one->context(), other->context());
  });
}

// --- Groups that overlap

using OverlappingGroups = std::vector<MembersPointer>;

OverlappingGroups random_groups(int num_pes, int count, std::mt19937& random) {
  OverlappingGroups groups;
  for (int i = 0; i < count; ++i) {
    Members members(static_cast<std::size_t>(num_pes));
    std::iota(members.begin(), members.end(), 0);
    std::shuffle(members.begin(), members.end(), random);
    members.resize(1 + random() % members.size());
    groups.push_back(std::make_shared<const Members>(std::move(members)));
  }
  return groups;
}

// Makes the groups' communicators, all with one parent and one tag, and uses each.
Task<> make_all_of(Ref<Communicator> parent, int pe, const OverlappingGroups& groups,
                   std::vector<std::set<std::uint64_t>>& contexts) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const MembersPointer members = groups[i];
    const auto found = std::find(members->begin(), members->end(), pe);
    if (found == members->end()) continue;
    const int place = static_cast<int>(found - members->begin());
    const Ref<Communicator> made = co_await create_group(parent, members, place, 5);
    EXPECT_EQ(made->rank(), place);
    contexts[i].insert(made->context());
    int value = pe;
    const CollectiveContext context = made->next_collective_contexts().local;
    co_await broadcast_bytes(context, 0, bytes_of_value(value));
    EXPECT_EQ(value, members->front()) << "group " << i << " at PE " << pe;
  }
}

void expect_one_context_each(const std::vector<std::set<std::uint64_t>>& contexts) {
  std::set<std::uint64_t> all;
  for (const auto& of_group : contexts) {
    EXPECT_EQ(of_group.size(), 1U);
    all.insert(of_group.begin(), of_group.end());
  }
  EXPECT_EQ(all.size(), contexts.size());
}

// PE 1 is in both groups. The other member of the second one comes first.
TEST(Communicator, AGroupIsNotTakenForAnotherOneWithACommonMember) {
  Ranks ranks(3);
  OverlappingGroups groups;
  for (const int first : {0, 2}) groups.push_back(std::make_shared<const Members>(Members{first, 1}));
  std::vector<std::set<std::uint64_t>> contexts(groups.size());
  const std::vector<int> order{1, 2, 0};
  ranks.run_in_turn(order, [&](int pe) { return make_all_of(ranks.world(pe), pe, groups, contexts); });
  expect_one_context_each(contexts);
}

struct RandomGroups : ::testing::TestWithParam<int> {};

TEST_P(RandomGroups, OverlapAndGetTheirOwnCommunicators) {
  const int num_pes = GetParam();
  Ranks ranks(num_pes);
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const OverlappingGroups groups = random_groups(num_pes, 12, random);
    std::vector<int> order(static_cast<std::size_t>(num_pes));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::set<std::uint64_t>> contexts(groups.size());
    ranks.run_in_turn(order, [&](int pe) { return make_all_of(ranks.world(pe), pe, groups, contexts); });
    expect_one_context_each(contexts);
  }
}

INSTANTIATE_TEST_SUITE_P(Communicator, RandomGroups, ::testing::Values(4, 5, 6, 7, 8));

}  // namespace
}  // namespace weft::mpi
