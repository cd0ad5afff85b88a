#include "runtime/tree/spanning_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tree/host_groups.h"

namespace weft::runtime {
namespace {

using GroupsPointer = std::shared_ptr<const HostGroups>;

// The hosts of `num_pes` PEs, by a rule; null is a job of one host.
struct Layout {
  std::string name;
  std::function<int(int pe, int num_pes)> host_of;

  GroupsPointer hosts(int num_pes) const {
    std::vector<int> numbers;
    for (int pe = 0; pe < num_pes && host_of; ++pe) numbers.push_back(host_of(pe, num_pes));
    return HostGroups::make(numbers);
  }
};

const std::vector<Layout>& tree_layouts() {
  static const std::vector<Layout> all = {
      {"one host", nullptr},
      {"two hosts", [](int pe, int num_pes) { return pe < (num_pes + 1) / 2 ? 0 : 1; }},
      {"round robin over three", [](int pe, int) { return pe % 3; }},
      {"uneven", [](int pe, int) { return pe < 1 ? 7 : (pe < 4 ? 3 : 5); }},
      {"twenty hosts", [](int pe, int) { return pe / 5; }},
  };
  return all;
}

// Calls check(hosts, root, num_pes) for all of these.
void for_all(const std::function<void(const HostGroups*, int, int)>& check) {
  for (const Layout& layout : tree_layouts()) {
    for (const int num_pes : {1, 2, 3, 4, 5, 6, 7, 21, 22, 100}) {
      const GroupsPointer hosts = layout.hosts(num_pes);
      for (const int root : {0, num_pes / 2, num_pes - 1}) {
        SCOPED_TRACE(layout.name + ", " + std::to_string(num_pes) + " PEs, root " + std::to_string(root));
        check(hosts.get(), root, num_pes);
      }
    }
  }
}

TEST(CompleteTree, ChildrenSubtreesAndLevelsAgree) {
  for (const int size : {1, 2, CompleteTree::kArity, CompleteTree::kArity + 2, 100, 700}) {
    for (int rank = 0; rank < size; ++rank) {
      const CompleteTree tree{rank, size};
      int below = 1;
      for (int which = 0; which < tree.num_children(); ++which) {
        const CompleteTree child{tree.first_child() + which, size};
        EXPECT_LT(child.rank, size);
        EXPECT_EQ(child.parent(), rank);
        below += child.num_in_subtree();
      }
      EXPECT_EQ(tree.num_in_subtree(), below);
      int previous_last = -1;
      tree.for_levels([&](int first, int last) {
        EXPECT_LE(first, last);
        EXPECT_GT(first, previous_last);
        previous_last = last;
      });
      EXPECT_LT(previous_last, size);
    }
    EXPECT_EQ((CompleteTree{0, size}.num_in_subtree()), size);
  }
  // Ranks whose children's numbers have no int.
  constexpr int kMost = 2'000'000'000;
  EXPECT_EQ((CompleteTree{kMost - 1, kMost}.num_children()), 0);
  EXPECT_EQ((CompleteTree{kMost - 1, kMost}.num_in_subtree()), 1);
}

TEST(SpanningTree, EveryPeHasOneParentForAnyRoot) {
  for_all([](const HostGroups* hosts, int root, int num_pes) {
    std::set<int> reached{root};
    int edges = 0;
    for (int pe = 0; pe < num_pes; ++pe) {
      const SpanningTree tree(root, pe, num_pes, hosts);
      EXPECT_EQ(tree.is_root(), pe == root);
      for (int i = 0; i < tree.num_children(); ++i) {
        const int child = tree.child(i);
        EXPECT_EQ(SpanningTree(root, child, num_pes, hosts).parent(), pe);
        EXPECT_TRUE(reached.insert(child).second) << child << " has two parents";
        ++edges;
      }
    }
    EXPECT_EQ(edges, num_pes - 1);
  });
}

TEST(SpanningTree, ASubtreeIsAPeAndTheSubtreesOfItsChildren) {
  for_all([](const HostGroups* hosts, int root, int num_pes) {
    EXPECT_EQ(SpanningTree(root, root, num_pes, hosts).num_in_subtree(), num_pes);
    for (int pe = 0; pe < num_pes; ++pe) {
      const SpanningTree tree(root, pe, num_pes, hosts);
      int expected = 1;
      for (int i = 0; i < tree.num_children(); ++i) {
        expected += SpanningTree(root, tree.child(i), num_pes, hosts).num_in_subtree();
      }
      EXPECT_EQ(tree.num_in_subtree(), expected);
    }
  });
}

TEST(SpanningTree, EachHostIsReachedOnce) {
  for_all([](const HostGroups* hosts, int root, int num_pes) {
    if (hosts == nullptr) return;
    std::vector<int> entered(static_cast<std::size_t>(hosts->num_hosts()), 0);
    for (int pe = 0; pe < num_pes; ++pe) {
      if (pe == root) continue;
      const int parent = SpanningTree(root, pe, num_pes, hosts).parent();
      if (hosts->host_of(parent) != hosts->host_of(pe))
        ++entered[static_cast<std::size_t>(hosts->host_of(pe))];
    }
    std::vector<int> once(entered.size(), 1);
    once[static_cast<std::size_t>(hosts->host_of(root))] = 0;
    EXPECT_EQ(entered, once);
  });
}

TEST(SpanningTree, ChildrenOnOtherHostsComeFirst) {
  for_all([](const HostGroups* hosts, int root, int num_pes) {
    if (hosts == nullptr) return;
    for (int pe = 0; pe < num_pes; ++pe) {
      const SpanningTree tree(root, pe, num_pes, hosts);
      std::vector<bool> here;
      for (int i = 0; i < tree.num_children(); ++i)
        here.push_back(hosts->host_of(tree.child(i)) == hosts->host_of(pe));
      EXPECT_TRUE(std::ranges::is_sorted(here)) << pe;
    }
  });
}

TEST(SpanningTree, RootsOfOneHostHaveDifferentLeadersElsewhere) {
  const std::vector<int> host_of = {0, 0, 0, 0, 1, 1, 1, 1};
  const GroupsPointer hosts = HostGroups::make(host_of);
  std::set<int> leaders;
  for (int root = 0; root < 4; ++root) leaders.insert(SpanningTree(root, root, 8, hosts.get()).child(0));
  EXPECT_EQ(leaders, (std::set<int>{4, 5, 6, 7}));
}

TEST(HostGroups, HostsMakeNoDifferenceIfThereIsOneOrOneForEachMember) {
  for (const std::vector<int>& host_of : {std::vector<int>{}, {4}, {4, 4, 4}, {4, 3, 9}}) {
    EXPECT_EQ(HostGroups::make(host_of), nullptr);
  }
}

TEST(HostGroups, HostsAreNumberedByTheirFirstMembers) {
  const std::vector<int> host_of = {9, 2, 9, 2, 9};
  const GroupsPointer hosts = HostGroups::make(host_of);
  ASSERT_NE(hosts, nullptr);
  EXPECT_EQ(hosts->num_hosts(), 2);
  EXPECT_EQ(hosts->num_on(0), 3);
  EXPECT_EQ(hosts->num_on(1), 2);
  EXPECT_EQ(hosts->member(0, 2), 4);
  EXPECT_EQ(hosts->member(1, 0), 1);
  EXPECT_EQ(hosts->host_of(3), 1);
  EXPECT_EQ(hosts->index_of(3), 1);
}

}  // namespace
}  // namespace weft::runtime
