// Distances in a random sparse graph: a call for each edge that the search looks at. Such small calls travel aggregated.
//
//   weft run -n 2 build/release/examples/graph_search
//
// A vertex that is reached by a shorter way than before tells its neighbours. Quiescence ends the search.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "weft/weft.h"

constexpr int kVertices = 5000;
constexpr int kEdges = 10'000;
constexpr int kBlocks = 8;
constexpr int kFar = std::numeric_limits<int>::max();  // not reached

// The edge with this number, the same on each PE.
std::pair<int, int> edge(int number) {
  std::uint64_t state = static_cast<std::uint64_t>(number) * 6364136223846793005U + 1442695040888963407U;
  state = (state ^ state >> 32) * 6364136223846793005U;
  return {static_cast<int>((state >> 32) % kVertices), static_cast<int>((state & 0xFFFFFFFFU) % kVertices)};
}

// The vertices v with v % kBlocks == the chare's index.
struct Block : weft::Chare<Block> {
  // Makes the block's part of the edges, and tells the blocks of both ends.
  void make_edges() {
    const auto blocks = proxy().aggregated();
    for (int number = index(); number < kEdges; number += kBlocks) {
      const auto [from, to] = edge(number);
      blocks[from % kBlocks].send<&Block::add_neighbour>(from, to);
      blocks[to % kBlocks].send<&Block::add_neighbour>(to, from);
    }
  }
  void add_neighbour(int vertex, int neighbour) { neighbours_[vertex / kBlocks].push_back(neighbour); }

  void reach(int vertex, int distance) {
    if (distance >= distances_[vertex / kBlocks]) return;
    distances_[vertex / kBlocks] = distance;
    const auto blocks = proxy().aggregated();
    for (const int neighbour : neighbours_[vertex / kBlocks])
      blocks[neighbour % kBlocks].send<&Block::reach>(neighbour, distance + 1);
  }
  std::vector<int> distances() { return distances_; }

  std::vector<std::vector<int>> neighbours_{kVertices / kBlocks};
  std::vector<int> distances_ = std::vector<int>(kVertices / kBlocks, kFar);
};

weft::Task<> start(weft::Runtime& runtime) {
  auto blocks = weft::Array<Block>::create(runtime, kBlocks);
  blocks.send<&Block::make_edges>();
  co_await runtime.quiescence();
  blocks[0].send<&Block::reach>(0, 0);
  co_await runtime.quiescence();
  int reached = 0;
  int farthest = 0;
  long sum = 0;
  for (const std::vector<int>& distances : co_await blocks.call<&Block::distances>()) {
    for (const int distance : distances) {
      if (distance == kFar) continue;
      ++reached;
      farthest = std::max(farthest, distance);
      sum += distance;
    }
  }
  std::printf("%d of %d vertices are reached, over %d edges at most, %ld in all\n", reached, kVertices,
              farthest, sum);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
