#include "runtime/spanning_tree.h"

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

}  // namespace
}  // namespace weft::runtime
