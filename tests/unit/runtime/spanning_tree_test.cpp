#include "runtime/collective/spanning_tree.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::runtime {
namespace {

TEST(SpanningTree, EveryPeHasOneParentForAnyRoot) {
  for (int num_pes : {1, 2, 3, 4, 5, 6, 21, 22, 100}) {
    for (int root : {0, num_pes / 2, num_pes - 1}) {
      std::set<int> reached{root};
      int edges = 0;
      for (int pe = 0; pe < num_pes; ++pe) {
        SpanningTree tree(root, pe, num_pes);
        EXPECT_EQ(tree.is_root(), pe == root);
        for (int i = 0; i < tree.num_children(); ++i) {
          int child = tree.child(i);
          EXPECT_EQ(SpanningTree(root, child, num_pes).parent(), pe);
          EXPECT_TRUE(reached.insert(child).second) << child << " has two parents";
          ++edges;
        }
      }
      EXPECT_EQ(edges, num_pes - 1) << num_pes << " PEs, root " << root;
    }
  }
}

TEST(SpanningTree, ASubtreeIsAPeAndTheSubtreesOfItsChildren) {
  for (int num_pes : {1, 2, 3, 4, 5, 6, 7, 21, 22, 100}) {
    for (int root : {0, num_pes / 2, num_pes - 1}) {
      EXPECT_EQ(SpanningTree(root, root, num_pes).num_in_subtree(), num_pes);
      for (int pe = 0; pe < num_pes; ++pe) {
        SpanningTree tree(root, pe, num_pes);
        int expected = 1;
        for (int i = 0; i < tree.num_children(); ++i) {
          expected += SpanningTree(root, tree.child(i), num_pes).num_in_subtree();
        }
        EXPECT_EQ(tree.num_in_subtree(), expected);
      }
    }
  }
}

}  // namespace
}  // namespace weft::runtime
