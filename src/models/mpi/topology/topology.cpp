#include "models/mpi/topology/topology.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "weft/mpi/mpi.h"

namespace weft::mpi {

int Topology::kind() const {
  if (cartesian() != nullptr) return MPI_CART;
  return graph() != nullptr ? MPI_GRAPH : MPI_DIST_GRAPH;
}

std::vector<int> Topology::sources(int rank) const {
  if (const Cartesian* grid = cartesian()) return grid->neighbours(rank);
  if (const Graph* whole = graph()) return {whole->neighbours(rank).begin(), whole->neighbours(rank).end()};
  return distributed_graph()->sources;
}

std::vector<int> Topology::destinations(int rank) const {
  if (const DistributedGraph* own = distributed_graph()) return own->destinations;
  return sources(rank);
}

std::vector<int> Topology::order_of_sends(int num_destinations) const {
  std::vector<int> order(static_cast<std::size_t>(num_destinations));
  std::iota(order.begin(), order.end(), 0);
  if (cartesian() == nullptr) return order;
  for (std::size_t i = 0; i + 1 < order.size(); i += 2) std::swap(order[i], order[i + 1]);
  return order;
}

}  // namespace weft::mpi
