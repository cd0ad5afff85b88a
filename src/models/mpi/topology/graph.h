// Graphs of processes: MPI_Graph_create, where each process knows the whole graph, and MPI_Dist_graph_create, where each process knows
// its own edges.
#pragma once

#include <span>
#include <vector>

#include "weft/base/pup.h"

#include "models/mpi/objects/error.h"

namespace weft::mpi {

class Graph {
 public:
  // `ends[i]` is the number of edges of the nodes 0 to i, as in MPI_Graph_create. Errors: MPI_ERR_TOPOLOGY if the arrays do not fit
  // together, MPI_ERR_RANK for an edge to a node that does not exist. `processes`: of the communicator.
  static Error make(std::span<const int> ends, std::span<const int> edges, int processes, Graph* made);

  int size() const { return static_cast<int>(ends_.size()); }
  const std::vector<int>& ends() const { return ends_; }
  const std::vector<int>& edges() const { return edges_; }
  // REQUIRES: 0 <= rank < size().
  std::span<const int> neighbours(int rank) const;

  void pup(base::Pup& p) { p | ends_ | edges_; }

 private:
  std::vector<int> ends_;
  std::vector<int> edges_;
};

// The edges of one process, in the order in which the neighbourhood collectives use them.
struct DistributedGraph {
  std::vector<int> sources;
  std::vector<int> source_weights;  // empty if the graph has no weights
  std::vector<int> destinations;
  std::vector<int> destination_weights;
  bool weighted = false;

  void pup(base::Pup& p) { p | sources | source_weights | destinations | destination_weights | weighted; }
};

// Errors: MPI_ERR_RANK for a rank that is not in the communicator, MPI_ERR_ARG for a negative weight.
Error check_edges(std::span<const int> ranks, std::span<const int> weights, int processes);

// An edge that a process has named in MPI_Dist_graph_create.
struct NamedEdge {
  int source;
  int destination;
  int weight;
};

// The edges of MPI_Dist_graph_create that concern process `rank`, out of those that any process has named.
void add_named_edges(std::span<const NamedEdge> edges, int rank, DistributedGraph* graph);

}  // namespace weft::mpi
