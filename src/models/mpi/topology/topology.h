// The virtual topology of a communicator: a grid, a graph that all processes know, or a graph of which each knows its own edges.
#pragma once

#include <variant>
#include <vector>

#include "models/mpi/topology/cartesian.h"
#include "models/mpi/topology/graph.h"

namespace weft::mpi {

class Topology {
 public:
  // For pup().
  Topology() = default;
  explicit Topology(Cartesian grid) : shape_(std::move(grid)) {}
  explicit Topology(Graph graph) : shape_(std::move(graph)) {}
  explicit Topology(DistributedGraph graph) : shape_(std::move(graph)) {}

  // Null if the topology is of another kind.
  const Cartesian* cartesian() const { return std::get_if<Cartesian>(&shape_); }
  const Graph* graph() const { return std::get_if<Graph>(&shape_); }
  const DistributedGraph* distributed_graph() const { return std::get_if<DistributedGraph>(&shape_); }
  // MPI_CART, MPI_GRAPH or MPI_DIST_GRAPH.
  int kind() const;

  // The processes from which `rank` receives in a neighbourhood collective, and those to which it sends. A process can appear more
  // than once, and MPI_PROC_NULL is beyond the edge of a grid. Of a distributed graph: the neighbours of this process.
  std::vector<int> sources(int rank) const;
  std::vector<int> destinations(int rank) const;

  // The positions of the destinations in the order in which this process sends. Messages of a pair of processes are received in the
  // order in which they were sent, so that in a grid what goes up comes from below: of each dimension the second one is first.
  std::vector<int> order_of_sends(int num_destinations) const;

  // For ranks that move.
  void pup(base::Pup& p) { p | shape_; }

 private:
  std::variant<Cartesian, Graph, DistributedGraph> shape_;
};

}  // namespace weft::mpi
