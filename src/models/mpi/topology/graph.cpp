#include "models/mpi/topology/graph.h"

#include <cstddef>

#include "weft/mpi/mpi.h"

#include "base/format.h"

namespace weft::mpi {

Error Graph::make(std::span<const int> ends, std::span<const int> edges, int processes, Graph* made) {
  if (ends.size() > static_cast<std::size_t>(processes))
    return {MPI_ERR_TOPOLOGY, base::format("the graph has {} nodes, the communicator only {} processes",
                                           ends.size(), processes)};
  int before = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < before)
      return {MPI_ERR_TOPOLOGY,
              base::format("node {}: the number of edges up to it is {}, less than before it", i, ends[i])};
    before = ends[i];
  }
  if (static_cast<std::size_t>(before) > edges.size())
    return {MPI_ERR_TOPOLOGY, "there are fewer edges than the index says"};
  for (const int edge : edges)
    if (edge < 0 || static_cast<std::size_t>(edge) >= ends.size())
      return {MPI_ERR_RANK,
              base::format("an edge leads to node {}, but the graph has {} nodes", edge, ends.size())};
  made->ends_.assign(ends.begin(), ends.end());
  made->edges_.assign(edges.begin(), edges.end());
  return {};
}

std::span<const int> Graph::neighbours(int rank) const {
  const auto i = static_cast<std::size_t>(rank);
  const int begin = i == 0 ? 0 : ends_[i - 1];
  return std::span(edges_).subspan(static_cast<std::size_t>(begin),
                                   static_cast<std::size_t>(ends_[i] - begin));
}

Error check_edges(std::span<const int> ranks, std::span<const int> weights, int processes) {
  for (const int rank : ranks)
    if (rank < 0 || rank >= processes)
      return {MPI_ERR_RANK,
              base::format("a neighbour has the rank {}, but there are {} processes", rank, processes)};
  for (const int weight : weights)
    if (weight < 0) return {MPI_ERR_ARG, base::format("the weight of an edge is {}; give 0 or more", weight)};
  return {};
}

void add_named_edges(std::span<const NamedEdge> edges, int rank, DistributedGraph* graph) {
  for (const NamedEdge& edge : edges) {
    if (edge.destination == rank) {
      graph->sources.push_back(edge.source);
      if (graph->weighted) graph->source_weights.push_back(edge.weight);
    }
    if (edge.source == rank) {
      graph->destinations.push_back(edge.destination);
      if (graph->weighted) graph->destination_weights.push_back(edge.weight);
    }
  }
}

}  // namespace weft::mpi
