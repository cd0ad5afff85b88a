#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/topology/cartesian.h"
#include "models/mpi/topology/dimensions.h"
#include "models/mpi/topology/graph.h"

namespace weft::mpi {
namespace {

std::vector<int> balanced(int nodes, std::vector<int> dimensions) {
  const Error error = balance_dimensions(nodes, dimensions);
  EXPECT_TRUE(error.ok()) << error.text;
  return dimensions;
}

TEST(Dimensions, AreBalancedAndDoNotIncrease) {
  EXPECT_EQ(balanced(6, {0, 0}), (std::vector<int>{3, 2}));
  EXPECT_EQ(balanced(7, {0, 0}), (std::vector<int>{7, 1}));
  EXPECT_EQ(balanced(6, {0, 3, 0}), (std::vector<int>{2, 3, 1}));
  EXPECT_EQ(balanced(12, {0, 0, 0}), (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(balanced(72, {0, 0, 0}), (std::vector<int>{6, 4, 3}));
  EXPECT_EQ(balanced(16, {0, 0, 0}), (std::vector<int>{4, 2, 2}));
  EXPECT_EQ(balanced(1, {0, 0}), (std::vector<int>{1, 1}));
  EXPECT_EQ(balanced(1 << 30, {0, 0, 0}), (std::vector<int>{1024, 1024, 1024}));
  EXPECT_EQ(balanced(2147483647, {0, 0}), (std::vector<int>{2147483647, 1}));
  EXPECT_EQ(balanced(1, {}), (std::vector<int>{}));
}

std::vector<int> balanced_in(int nodes, std::size_t count) {
  return balanced(nodes, std::vector<int>(count));
}

TEST(Dimensions, AreAsCloseToOneAnotherAsPossible) {
  EXPECT_EQ(balanced_in(5040, 3), (std::vector<int>{21, 16, 15}));
  EXPECT_EQ(balanced_in(5040, 2), (std::vector<int>{72, 70}));
  EXPECT_EQ(balanced_in(603612, 3), (std::vector<int>{92, 81, 81}));
  EXPECT_EQ(balanced_in(1000000000, 3), (std::vector<int>{1000, 1000, 1000}));
  EXPECT_EQ(balanced_in(30000, 8), (std::vector<int>{5, 5, 5, 5, 4, 3, 2, 2}));
  EXPECT_EQ(balanced_in(937500, 8), (std::vector<int>{10, 6, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(balanced_in(7, 5), (std::vector<int>{7, 1, 1, 1, 1}));
  EXPECT_EQ(balanced_in(1 << 30, 40).front(), 2);
}

// The smaller, the closer to one another. `extents` increase.
std::vector<int> rank_of_extents(const std::vector<int>& extents) {
  std::vector<int> key{extents.back() - extents.front()};
  for (const int extent : extents) key.push_back(-extent);
  return key;
}

// Of all ways to divide `nodes` into extents that increase, where the first ones are chosen already.
void try_all(int nodes, std::vector<int>& chosen, std::size_t count, std::vector<int>& best) {
  const int least = chosen.empty() ? 1 : chosen.back();
  if (chosen.size() + 1 == count) {
    if (nodes < least) return;
    chosen.push_back(nodes);
    if (best.empty() || rank_of_extents(chosen) < rank_of_extents(best)) best = chosen;
    chosen.pop_back();
    return;
  }
  for (int extent = least; extent <= nodes; ++extent) {
    if (nodes % extent != 0) continue;
    chosen.push_back(extent);
    try_all(nodes / extent, chosen, count, best);
    chosen.pop_back();
  }
}

TEST(Dimensions, AreTheBestOfAll) {
  for (int nodes = 1; nodes <= 720; ++nodes) {
    for (std::size_t count = 1; count <= 5; ++count) {
      std::vector<int> best;
      std::vector<int> chosen;
      try_all(nodes, chosen, count, best);
      std::reverse(best.begin(), best.end());
      EXPECT_EQ(balanced_in(nodes, count), best) << nodes << " nodes";
    }
  }
}

// With many divisors, with few, and next to the limit of an int.
TEST(Dimensions, AreFoundForLargeNumbers) {
  std::vector<int> numbers{2095133040, 1102701600, 1396755360, 2147483647, 2147483646,
                           2147395600, 2147483629, 1 << 30,    223092870,  80621568,
                           1162261467, 2145336164, 536870912,  1073676289};
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) numbers.push_back(1 + static_cast<int>(random() % 2147483647U));
  for (const int number : numbers) {
    for (std::size_t count = 1; count <= 10; ++count) {
      const std::vector<int> extents = balanced_in(number, count);
      EXPECT_TRUE(std::is_sorted(extents.rbegin(), extents.rend()));
      EXPECT_EQ(std::accumulate(extents.begin(), extents.end(), 1LL, std::multiplies<>()), number);
    }
  }
}

TEST(Dimensions, ThatDoNotFitAreErrors) {
  std::vector<int> dimensions{0, 3, 0};
  EXPECT_EQ(balance_dimensions(7, dimensions).error_class, MPI_ERR_DIMS);
  dimensions = {-1, 0};
  EXPECT_EQ(balance_dimensions(7, dimensions).error_class, MPI_ERR_DIMS);
  dimensions = {2, 2};
  EXPECT_EQ(balance_dimensions(8, dimensions).error_class, MPI_ERR_DIMS);
  EXPECT_EQ(balance_dimensions(0, dimensions).error_class, MPI_ERR_ARG);
}

class CartesianTest : public ::testing::Test {
 protected:
  CartesianTest() {
    const int extents[] = {2, 3};
    const int periodic[] = {0, 1};
    EXPECT_TRUE(Cartesian::make(extents, periodic, 6, &grid_).ok());
  }
  Cartesian grid_;
};

TEST_F(CartesianTest, RanksAreInRowMajorOrder) {
  for (int rank = 0; rank < 6; ++rank) {
    const std::vector<int> coordinates = grid_.coordinates(rank);
    EXPECT_EQ(coordinates, (std::vector<int>{rank / 3, rank % 3}));
    int back = -1;
    EXPECT_TRUE(grid_.rank(coordinates, &back).ok());
    EXPECT_EQ(back, rank);
  }
}

TEST_F(CartesianTest, PeriodicDimensionsWrapAround) {
  int rank = -1;
  const int beyond[] = {1, -4};
  EXPECT_TRUE(grid_.rank(beyond, &rank).ok());
  EXPECT_EQ(rank, 5);
  const int outside[] = {2, 0};
  EXPECT_EQ(grid_.rank(outside, &rank).error_class, MPI_ERR_ARG);
}

TEST_F(CartesianTest, ShiftsFindNeighbours) {
  Cartesian::Neighbours found{};
  ASSERT_TRUE(grid_.shift(0, 0, 1, &found).ok());
  EXPECT_EQ(found.source, MPI_PROC_NULL);
  EXPECT_EQ(found.destination, 3);
  ASSERT_TRUE(grid_.shift(0, 1, 1, &found).ok());
  EXPECT_EQ(found.source, 2);
  EXPECT_EQ(found.destination, 1);
  ASSERT_TRUE(grid_.shift(4, 1, -2147483647, &found).ok());
  EXPECT_EQ(grid_.shift(0, 2, 1, &found).error_class, MPI_ERR_DIMS);
  EXPECT_EQ(grid_.neighbours(1), (std::vector<int>{MPI_PROC_NULL, 4, 0, 2}));
}

TEST_F(CartesianTest, SubgridsKeepDimensions) {
  const int rows[] = {0, 1};
  EXPECT_EQ(grid_.subgrid(rows).extents(), (std::vector<int>{3}));
  EXPECT_EQ(grid_.part_of(5, rows).colour, 1);
  EXPECT_EQ(grid_.part_of(5, rows).key, 2);
  const int none[] = {0, 0};
  EXPECT_EQ(grid_.subgrid(none).size(), 1);
  EXPECT_EQ(grid_.part_of(4, none).colour, 4);
}

TEST_F(CartesianTest, WrongGridsAreErrors) {
  const int extents[] = {2, 4};
  const int periodic[] = {0, 0};
  EXPECT_EQ(Cartesian::make(extents, periodic, 6, &grid_).error_class, MPI_ERR_TOPOLOGY);
  const int none[] = {2, 0};
  EXPECT_EQ(Cartesian::make(none, periodic, 6, &grid_).error_class, MPI_ERR_DIMS);
  ASSERT_TRUE(Cartesian::make({}, {}, 6, &grid_).ok());
  EXPECT_EQ(grid_.size(), 1);
}

TEST(Graph, HasTheNeighboursOfTheIndex) {
  const int ends[] = {2, 3, 4, 6};
  const int edges[] = {1, 3, 0, 3, 0, 2};
  Graph graph;
  ASSERT_TRUE(Graph::make(ends, edges, 4, &graph).ok());
  EXPECT_EQ(std::vector<int>(graph.neighbours(0).begin(), graph.neighbours(0).end()),
            (std::vector<int>{1, 3}));
  EXPECT_EQ(std::vector<int>(graph.neighbours(3).begin(), graph.neighbours(3).end()),
            (std::vector<int>{0, 2}));
  EXPECT_EQ(Graph::make(ends, edges, 3, &graph).error_class, MPI_ERR_TOPOLOGY);
  const int wrong[] = {1, 4, 0, 3, 0, 2};
  EXPECT_EQ(Graph::make(ends, wrong, 4, &graph).error_class, MPI_ERR_RANK);
  const int decreasing[] = {2, 1, 4, 6};
  EXPECT_EQ(Graph::make(decreasing, edges, 4, &graph).error_class, MPI_ERR_TOPOLOGY);
}

TEST(DistributedGraph, TakesItsOwnEdges) {
  const NamedEdge edges[] = {{0, 1, 5}, {1, 1, 6}, {1, 2, 7}, {2, 0, 8}};
  DistributedGraph graph;
  graph.weighted = true;
  add_named_edges(edges, 1, &graph);
  EXPECT_EQ(graph.sources, (std::vector<int>{0, 1}));
  EXPECT_EQ(graph.source_weights, (std::vector<int>{5, 6}));
  EXPECT_EQ(graph.destinations, (std::vector<int>{1, 2}));
  const int ranks[] = {0, 3};
  EXPECT_EQ(check_edges(ranks, {}, 3).error_class, MPI_ERR_RANK);
}

}  // namespace
}  // namespace weft::mpi
